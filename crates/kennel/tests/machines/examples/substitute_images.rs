//! Images under the names that the examples' manifests use. Each does, in a few lines, what can be seen from
//! outside of the program that it replaces.

use std::path::Path;

use kennel_testkit::machine::Image;

/// Ends when it is asked to, as a daemon does and a shell does not on its own.
const SERVE: &str = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done\n";

/// All of them.
pub(super) fn all() -> Vec<Image> {
    vec![
        log_collector(),
        node_exporter(),
        network_plugin(),
        network_daemon(),
        storage_registrar(),
        storage_driver(),
        security_audit(),
        node_cache(),
    ]
}

fn script(text: &str) -> String {
    format!("#!/bin/sh\n{text}")
}

/// Reads the configuration, follows the files that it names, keeps positions where it says.
fn log_collector() -> Image {
    let text = r#"
config=$2
setting() { sed -n "s/^ *$1: *\([^ ]*\).*/\1/p" "$config"; }
positions=$(dirname "$(setting db)")
httpd -p "$(setting http_port)" -h /www
trap 'echo flushed >"$positions/last-words"; exit 0' TERM
exclude=$(setting exclude_path)
while :; do
    for file in $(setting path); do
        case $file in $exclude) continue ;; esac
        kept=$positions/$(basename "$file")
        from=$(cat "$kept" 2>/dev/null || echo 0)
        to=$(wc -l <"$file")
        [ "$to" -gt "$from" ] || continue
        tail -n "+$((from + 1))" "$file" | head -n "$((to - from))" |
            while read -r _ _ _ line; do echo "{\"node\":\"$NODE_NAME\",\"log\":\"$line\"}"; done
        echo "$to" >"$kept"
    done
    sleep 0.2 & wait $!
done
"#;
    Image::new("cr.fluentbit.io/fluent/fluent-bit:3.2")
        .executable("/fluent-bit/bin/fluent-bit", script(text))
        .file("/www/api/v1/health", "ok\n")
        .file("/www/index.html", "{}\n")
}

/// The real one: Debian's, as `scripts/prometheus.sh` fetches it.
fn node_exporter() -> Image {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let path = tools.join("node-exporter").canonicalize();
    let path = path.expect("the exporter is there: run scripts/prometheus.sh");
    Image::new("quay.io/prometheus/node-exporter:v1.9.1")
        .program("/bin/node_exporter", path)
        .entrypoint(&["/bin/node_exporter"])
        .user("nobody")
}

/// A CNI plugin that really makes networks: it hands over to the one that everybody has, with the daemon's subnet.
fn network_plugin() -> Image {
    let text = r#"
. /run/flannel/subnet.env
ipam='{"type": "host-local", "subnet": "'$FLANNEL_SUBNET'"}'
echo '{"cniVersion": "0.3.1", "name": "cbr0", "type": "bridge", "bridge": "cni0",
       "isDefaultGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": '"$ipam"'}' | /opt/cni/bin/bridge
"#;
    Image::new("ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3")
        .executable("/flannel", script(text))
}

fn network_daemon() -> Image {
    let text = r#"
port=$(echo "$*" | sed 's/.*--healthz-port=\([0-9]*\).*/\1/')
network=$(sed -n 's,.*"Network": "\([0-9]*\.[0-9]*\)\..*,\1,p' /etc/kube-flannel/net-conf.json)
echo "FLANNEL_SUBNET=$network.0.0/24" >/run/flannel/subnet.env
httpd -p "127.0.0.1:$port" -h /www
"#;
    Image::new("ghcr.io/flannel-io/flannel:v0.28.9")
        .executable("/opt/bin/flanneld", script(text) + SERVE)
        .file("/www/healthz", "ok\n")
}

/// What both halves of the storage plugin can: wait at a socket, and answer everybody with one line.
const SOCKETS: &str = r#"#!/bin/perl
$| = 1;
sub flag { my ($name) = @_; (map { /^--$name=(.*)/ ? $1 : () } @ARGV)[0] }
sub address { pack "Sa108", 1, $_[0] }
sub answer {
    my ($path, $line) = @_;
    unlink $path;
    socket S, 1, 1, 0 or die $!;
    bind S, address($path) or die "$path: $!";
    listen S, 5 or die $!;
    while (1) { if (accept C, S) { print C $line; close C } }
}
"#;

/// Asks the driver for its name, and opens the socket that a kubelet would ask.
fn storage_registrar() -> Image {
    let text = r#"
my $name;
until ($name) {
    socket D, 1, 1, 0 or die $!;
    if (connect D, address(flag("csi-address"))) { $name = <D>; close D }
    select undef, undef, undef, 0.1;
}
chomp $name;
my $socket = "/registration/$name-reg.sock";
$SIG{TERM} = sub { unlink $socket; exit 0 };
answer($socket, flag("kubelet-registration-path") . "\n");
"#;
    perl("registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0")
        .executable("/csi-node-driver-registrar", format!("{SOCKETS}{text}"))
        .entrypoint(&["/csi-node-driver-registrar"])
}

/// Mounts something for a pod, as a driver does when it is asked to, and answers with its name.
fn storage_driver() -> Image {
    let text = r#"
my $volume = "/var/lib/kubelet/pods/a-pod/volumes/data";
system("mkdir", "-p", $volume) == 0 && system("mount", "-t", "tmpfs", "tmpfs", $volume) == 0 or die;
my $socket = flag("endpoint") =~ s,^unix://,,r;
$SIG{TERM} = sub { unlink $socket; system("umount", $volume); exit 0 };
print "on node ", flag("nodeid"), "\n";
answer($socket, flag("drivername") . "\n");
"#;
    perl("registry.k8s.io/sig-storage/hostpathplugin:v1.17.1")
        .executable("/hostpathplugin", format!("{SOCKETS}{text}"))
        .entrypoint(&["/hostpathplugin"])
}

/// Debian's, which is always there; busybox has no sockets with names.
fn perl(name: &str) -> Image {
    Image::new(name).program("/bin/perl", "/usr/bin/perl")
}

fn security_audit() -> Image {
    let text = "httpd -p 8765 -h /www\n";
    Image::new("docker.io/falcosecurity/falco:0.43.0")
        .executable("/usr/bin/falco", script(text) + SERVE)
        .file("/www/healthz", "{\"status\": \"ok\"}\n")
}

/// Keeps a word on disk across restarts, and serves it on its port.
fn node_cache() -> Image {
    let text =
        "echo \"${GENERATION:-first}\" >>/data/generations\nnc -ll -p 6379 -e echo +PONG &\n";
    Image::new("docker.io/library/redis:7.4-alpine")
        .executable("/bin/docker-entrypoint.sh", script(text) + SERVE)
        .executable("/bin/redis-cli", script("echo PONG\n"))
        .entrypoint(&["docker-entrypoint.sh"])
        .working_dir("/data")
}
