//! `kennel certs`: shows and renews the certificates of a running server, replaces its certificate authority, and revokes
//! client certificates.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Context as _;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_types::Timestamp;
use serde_json::{Value, json};

use crate::certs_args::{CertsArgs, CertsVerb};
use crate::cluster;

const PATH: &str = "/kennel.dev/certificates";

pub(crate) async fn run(args: CertsArgs) -> anyhow::Result<()> {
    let config = args.admin.config().await?;
    let client = cluster::client_of(config)?;
    let writer = Writer::new(client, Fence::open());
    let text = match args.verb.unwrap_or(CertsVerb::Show) {
        CertsVerb::Show => {
            let all = writer.send(&Call::get(PATH)).await;
            table(
                &all.context("cannot read the server's certificates")?
                    .tree()?,
            )?
        }
        CertsVerb::Renew { names } => {
            table(&act(&writer, "renew", &json!({ "names": names })).await?)?
        }
        CertsVerb::RotateCa => {
            let all = act(&writer, "rotate-ca", &json!({})).await?;
            table(&all)?
                + "\nThe new certificate authority signs from now on. Agents follow within minutes. Give users the new admin\n\
                   kubeconfig or the new ca.crt; then `kennel certs retire-ca` ends the trust in the old one.\n"
        }
        CertsVerb::RetireCa => table(&act(&writer, "retire-ca", &json!({})).await?)?,
        CertsVerb::ReissueAdmin => {
            act(&writer, "reissue-admin", &json!({})).await?;
            "admin.kubeconfig in the server's data directory is new, and earlier ones are revoked\n"
                .to_owned()
        }
        CertsVerb::Revoke { user } => {
            act(&writer, "revoke", &json!({ "user": user })).await?;
            format!("the client certificates of {user} are revoked\n")
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// The answer is the list of all certificates.
async fn act(writer: &Writer, action: &str, body: &Value) -> anyhow::Result<Value> {
    let call = Call::create(format!("{PATH}/{action}"), body.to_string());
    let answer = writer.send(&call).await;
    Ok(answer.with_context(|| format!("{action} failed"))?.tree()?)
}

fn table(all: &Value) -> anyhow::Result<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let now = Timestamp::parse(&text(&all["now"])).context("the server does not tell its time")?;
    let mut out = format!(
        "{:<26} {:<22} {:<8} {}\n",
        "NAME", "EXPIRES", "LEFT", "SIGNED BY"
    );
    let mut has_own = false;
    let mut files = BTreeSet::new();
    for one in all["certificates"].as_array().into_iter().flatten() {
        let end = text(&one["notAfter"]);
        let left = Timestamp::parse(&end).map(|end| end.saturating_since(now).as_secs() / 86_400);
        let left = left.map(|days| format!("{days}d")).unwrap_or_default();
        let (name, issuer) = (text(&one["name"]), text(&one["issuer"]));
        let issuer = issuer.trim_start_matches("CN=");
        let mark = if one["expiring"] == true {
            match one["file"].as_str() {
                Some(file) => drop(files.insert(file.to_owned())),
                None => has_own = true,
            }
            "  EXPIRES SOON"
        } else {
            ""
        };
        writeln!(out, "{name:<26} {end:<22} {left:<8} {issuer}{mark}")?;
    }
    if has_own {
        out.push_str(
            "\nThe server renews its certificates itself: its log says why it could not.\n",
        );
    }
    for file in files {
        writeln!(
            out,
            "\nThe server does not renew {file}: replace it. It is read for each connection to etcd."
        )?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_shown_with_what_they_have_left() {
        let row = |name: &str, end: &str, expiring: bool| json!({"name": name, "issuer": "CN=kennel-ca", "notAfter": end, "expiring": expiring});
        let all = json!({
            "now": "2026-01-01T00:00:00Z",
            "certificates": [row("ca", "2036-01-01T00:00:00Z", false), row("server", "2026-01-11T12:00:00Z", true)],
        });
        let expected = "\
NAME                       EXPIRES                LEFT     SIGNED BY
ca                         2036-01-01T00:00:00Z   3652d    kennel-ca
server                     2026-01-11T12:00:00Z   10d      kennel-ca  EXPIRES SOON

The server renews its certificates itself: its log says why it could not.
";
        assert_eq!(table(&all).unwrap(), expected);
    }

    #[test]
    fn a_certificate_for_etcd_is_not_the_servers_to_renew() {
        let row = json!({
            "name": "etcd-client", "issuer": "CN=etcd-ca", "notAfter": "2026-01-11T12:00:00Z", "expiring": true,
            "file": "/etc/kennel/etcd-client.pem",
        });
        let all = json!({"now": "2026-01-01T00:00:00Z", "certificates": [row]});
        let expected = "\
NAME                       EXPIRES                LEFT     SIGNED BY
etcd-client                2026-01-11T12:00:00Z   10d      etcd-ca  EXPIRES SOON

The server does not renew /etc/kennel/etcd-client.pem: replace it. It is read for each connection to etcd.
";
        assert_eq!(table(&all).unwrap(), expected);
    }
}
