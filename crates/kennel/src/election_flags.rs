//! The flags of leader election, with the names and defaults of Kubernetes' own components.

use std::time::Duration;

use clap::{ArgAction, Args};
use kennel_client::lease::{ElectionError, Timing};
use kennel_control::daemonset;
use kennel_core::duration::{self, Go};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Leader election")]
#[expect(
    clippy::struct_field_names,
    reason = "the flags are named after the fields"
)]
pub(crate) struct ElectionArgs {
    /// Use leader election, so that only one of several controllers writes; the others stand by
    ///
    /// `--leader-elect=false` switches it off: then nothing but you makes sure that there is only one.
    #[arg(
        long,
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_name = "BOOL"
    )]
    pub(crate) leader_elect: bool,

    /// Namespace of the lease for leader election
    #[arg(long, default_value = daemonset::LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: String,

    /// Name of the lease for leader election
    /// [default: kennel-daemonset-controller, and with --assist kennel-daemonset-controller-assist]
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_elect_resource_name: Option<String>,

    /// How long other candidates wait after the last renewal before they take the lease; whole seconds
    #[arg(long, default_value = "15s", value_name = "TIME", value_parser = whole_seconds)]
    pub(crate) leader_elect_lease_duration: Duration,

    /// How long the leader goes on without a renewal that the API confirmed; less than the lease duration
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = time)]
    pub(crate) leader_elect_renew_deadline: Duration,

    /// How often the leader renews the lease and candidates try to take it; less than the renew deadline
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = time)]
    pub(crate) leader_elect_retry_period: Duration,
}

/// Times that do not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidTime {
    #[error("it is not a time such as 15s or 1m30s")]
    NotATime,
    #[error("it is zero")]
    Zero,
    #[error("it is not a whole number of seconds")]
    Fraction,
    #[error(
        "--leader-elect-lease-duration ({lease}) must be longer than --leader-elect-renew-deadline ({renew}), and that \
         longer than --leader-elect-retry-period ({retry})"
    )]
    Order { lease: Go, renew: Go, retry: Go },
}

fn time(text: &str) -> Result<Duration, InvalidTime> {
    match duration::parse(text).ok_or(InvalidTime::NotATime)? {
        Duration::ZERO => Err(InvalidTime::Zero),
        time => Ok(time),
    }
}

/// The Lease object has whole seconds.
fn whole_seconds(text: &str) -> Result<Duration, InvalidTime> {
    let time = time(text)?;
    let whole = time.subsec_nanos() == 0;
    whole.then_some(time).ok_or(InvalidTime::Fraction)
}

impl ElectionArgs {
    /// The lease's name. An assistant works beside another controller, and has a lease of its own.
    pub(crate) fn lease_name(&self, assist: bool) -> String {
        let default = if assist {
            daemonset::ASSIST_LEASE_NAME
        } else {
            daemonset::LEASE_NAME
        };
        let given = self.leader_elect_resource_name.as_deref();
        given.unwrap_or(default).to_owned()
    }

    pub(crate) fn timing(&self) -> Result<Timing, InvalidTime> {
        let timing = Timing {
            duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry: self.leader_elect_retry_period,
        };
        if timing.retry < timing.renew_deadline && timing.renew_deadline < timing.duration {
            return Ok(timing);
        }
        Err(InvalidTime::Order {
            lease: Go(timing.duration),
            renew: Go(timing.renew_deadline),
            retry: Go(timing.retry),
        })
    }
}

/// What to do about a lease that the API refuses.
pub(crate) fn advice(error: &ElectionError) -> String {
    let ElectionError {
        namespace, failure, ..
    } = error;
    let what = if failure.is(404) {
        format!("create the namespace {namespace}")
    } else {
        format!(
            "grant get, create and update on leases (coordination.k8s.io) in namespace {namespace}, as the Role in \
             deploy/kubernetes/daemonset-controller.yaml does"
        )
    };
    format!(
        "{error}: {what}; or choose another namespace with --leader-elect-resource-namespace; or, if this is the only \
         DaemonSet controller of the cluster, switch election off with --leader-elect=false"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        election: ElectionArgs,
    }

    fn parse(flags: &[&str]) -> ElectionArgs {
        let line = ["kennel"].iter().chain(flags);
        Line::try_parse_from(line).unwrap().election
    }

    #[test]
    fn election_is_on_unless_it_is_switched_off() {
        assert!(parse(&[]).leader_elect);
        assert!(parse(&["--leader-elect"]).leader_elect);
        assert!(parse(&["--leader-elect=true"]).leader_elect);
        assert!(!parse(&["--leader-elect=false"]).leader_elect);
    }

    #[test]
    fn times_are_upstreams_and_must_fit_together() {
        let timing = parse(&[]).timing().unwrap();
        assert_eq!(timing.duration, Duration::from_secs(15));
        assert_eq!(timing.renew_deadline, Duration::from_secs(10));
        assert_eq!(timing.retry, Duration::from_secs(2));
        let short = parse(&["--leader-elect-lease-duration=10s"]).timing();
        let error = short.unwrap_err().to_string();
        assert!(
            error.starts_with("--leader-elect-lease-duration (10s) must"),
            "{error}"
        );
        assert!(Line::try_parse_from(["kennel", "--leader-elect-lease-duration=1500ms"]).is_err());
        assert!(Line::try_parse_from(["kennel", "--leader-elect-retry-period=0s"]).is_err());
    }
}
