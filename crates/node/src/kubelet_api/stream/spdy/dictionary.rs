//! The words that both sides of SPDY/3 know before they begin to compress headers: the specification's own
//! table, byte for byte. Nothing here may ever change.

/// Each of these stands in the dictionary with its length before it.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// What follows them, without lengths.
const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417\
502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 \
Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service \
UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, \
Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/\
plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,\
enq=0.";

/// The dictionary.
pub(super) fn dictionary() -> Vec<u8> {
    let mut all = Vec::with_capacity(1423);
    for word in WORDS {
        let length = u32::try_from(word.len()).expect("the words are short");
        all.extend_from_slice(&length.to_be_bytes());
        all.extend_from_slice(word.as_bytes());
    }
    all.extend_from_slice(TAIL.as_bytes());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adler-32, by which zlib names dictionaries.
    fn checksum(bytes: &[u8]) -> u32 {
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in bytes {
            low = (low + u32::from(*byte)) % 65521;
            high = (high + low) % 65521;
        }
        high << 16 | low
    }

    #[test]
    fn it_is_the_one_that_everybody_has() {
        let dictionary = dictionary();
        assert_eq!(dictionary.len(), 1423);
        assert_eq!(checksum(&dictionary), 0xe3c6_a7c2);
    }
}
