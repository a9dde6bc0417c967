//! The exit status of a command and the size of its terminal, as `v4.channel.k8s.io` encodes them.

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::runtime::{Error, Result, Size};

const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// Prefix of the message for a command that could not be started.
const EXEC_FAILED: &str = "error executing command in container: ";

/// Reads the exit code of a command.
pub(super) async fn read(from: impl AsyncRead + Unpin) -> Result<i32> {
    let mut bytes = Vec::new();
    let read = from.take(STATUS_BYTES_MAX).read_to_end(&mut bytes).await;
    if bytes.is_empty() {
        let why = match read {
            Ok(_) => "the connection ended before the command did".to_owned(),
            Err(error) => format!("the connection broke before the command ended: {error}"),
        };
        return Err(Error::Unavailable(why));
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<i32> {
    let Ok(status) = serde_json::from_slice::<Value>(bytes) else {
        return Err(Error::Failed(String::from_utf8_lossy(bytes).into_owned()));
    };
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let mut codes = causes.filter(|cause| cause["reason"] == "ExitCode");
    let code = codes.find_map(|cause| cause["message"].as_str()?.parse().ok());
    let message = status["message"].as_str().unwrap_or("the command failed");
    // `encode` adds these prefixes again.
    let message = message
        .strip_prefix("Internal error occurred: ")
        .unwrap_or(message);
    let message = message.strip_prefix(EXEC_FAILED).unwrap_or(message);
    code.ok_or_else(|| Error::Failed(message.to_owned()))
}

pub(super) fn encode(result: &Result<i32>) -> Vec<u8> {
    let status = match result {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(error) => {
            let why = format!("{EXEC_FAILED}{error}");
            json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {why}"),
                "reason": "InternalError",
                "details": {"causes": [{"message": why}]},
                "code": 500,
            })
        }
    };
    status.to_string().into_bytes()
}

/// Encodes the size of a terminal.
pub(super) fn encode_size(size: Size) -> Vec<u8> {
    let mut line = json!({"Width": size.width, "Height": size.height}).to_string();
    line.push('\n');
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_survive_encoding() {
        for code in [0, 1, 137, 255] {
            assert_eq!(parse(&encode(&Ok(code))), Ok(code));
        }
        let failed = parse(&encode(&Err(Error::Failed("no such file".to_owned()))));
        assert_eq!(failed, Err(Error::Failed("no such file".to_owned())));
    }

    #[test]
    fn plain_text_of_older_servers_is_an_error() {
        assert_eq!(parse(b"boom"), Err(Error::Failed("boom".to_owned())));
    }

    #[tokio::test]
    async fn a_connection_that_ends_before_the_status_is_an_error() {
        assert!(matches!(read(&b""[..]).await, Err(Error::Unavailable(_))));
    }
}
