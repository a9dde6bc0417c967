//! The metrics of `/metrics/cadvisor`: names, labels and help texts of cAdvisor.

kennel_core::metrics! {
    pub METRICS;
    Counter PERIODS = "container_cpu_cfs_periods_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of elapsed enforcement period intervals.";
    Counter THROTTLED = "container_cpu_cfs_throttled_periods_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of throttled period intervals.";
    Counter THROTTLED_TIME = "container_cpu_cfs_throttled_seconds_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Total time duration the container has been throttled.";
    Counter CPU = "container_cpu_usage_seconds_total" ["container" "cpu" "id" "image" "name" "namespace" "pod"]
        "Cumulative cpu time consumed in seconds.";
    Gauge DISK_LIMIT = "container_fs_limit_bytes" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Number of bytes that can be consumed by the container on this filesystem. Of the machine alone.";
    Counter READ_BYTES = "container_fs_reads_bytes_total" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Cumulative count of bytes read";
    Counter READS = "container_fs_reads_total" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Cumulative count of reads completed";
    Gauge DISK_USAGE = "container_fs_usage_bytes" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Number of bytes that are consumed by the container on this filesystem. Of the machine alone.";
    Counter WRITTEN_BYTES = "container_fs_writes_bytes_total" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Cumulative count of bytes written";
    Counter WRITES = "container_fs_writes_total" ["container" "device" "id" "image" "name" "namespace" "pod"]
        "Cumulative count of writes completed";
    Gauge LAST_SEEN = "container_last_seen" ["container" "id" "image" "name" "namespace" "pod"]
        "Last time a container was seen by the exporter, in seconds since unix epoch.";
    Gauge CACHE = "container_memory_cache" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of bytes of page cache memory.";
    Gauge RSS = "container_memory_rss" ["container" "id" "image" "name" "namespace" "pod"]
        "Size of RSS in bytes.";
    Gauge SWAP = "container_memory_swap" ["container" "id" "image" "name" "namespace" "pod"]
        "Container swap usage in bytes.";
    Gauge MEMORY = "container_memory_usage_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Current memory usage in bytes, including all memory regardless of when it was accessed";
    Gauge WORKING_SET = "container_memory_working_set_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Current working set in bytes.";
    Counter RECEIVED = "container_network_receive_bytes_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of bytes received. Of the machine, and of pods with a network of their own.";
    Counter RECEIVED_ERRORS = "container_network_receive_errors_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of errors encountered while receiving";
    Counter RECEIVED_DROPPED = "container_network_receive_packets_dropped_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of packets dropped while receiving";
    Counter RECEIVED_PACKETS = "container_network_receive_packets_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of packets received";
    Counter TRANSMITTED = "container_network_transmit_bytes_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of bytes transmitted. Of the machine, and of pods with a network of their own.";
    Counter TRANSMITTED_ERRORS = "container_network_transmit_errors_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of errors encountered while transmitting";
    Counter TRANSMITTED_DROPPED = "container_network_transmit_packets_dropped_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of packets dropped while transmitting";
    Counter TRANSMITTED_PACKETS = "container_network_transmit_packets_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of packets transmitted";
    Counter OOM_EVENTS = "container_oom_events_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Count of out of memory events observed for the container: processes of it that the kernel killed.";
    Gauge PROCESSES = "container_processes" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of processes running inside the container.";
    Gauge CPU_PERIOD = "container_spec_cpu_period" ["container" "id" "image" "name" "namespace" "pod"]
        "CPU period of the container, in microseconds.";
    Gauge CPU_QUOTA = "container_spec_cpu_quota" ["container" "id" "image" "name" "namespace" "pod"]
        "CPU quota of the container, in microseconds. Containers without one have none.";
    Gauge MEMORY_LIMIT = "container_spec_memory_limit_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Memory limit for the container; 0 without one.";
    Gauge STARTED = "container_start_time_seconds" ["container" "id" "image" "name" "namespace" "pod"]
        "Start time of the container since unix epoch in seconds.";
    Gauge THREADS = "container_threads" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of threads running inside the container.";
    Gauge CORES = "machine_cpu_cores" ["boot_id" "machine_id" "system_uuid"]
        "Number of logical CPU cores.";
    Gauge MACHINE_MEMORY = "machine_memory_bytes" ["boot_id" "machine_id" "system_uuid"]
        "Amount of memory installed on the machine.";
}
