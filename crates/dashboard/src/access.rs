//! Authentication and checks of requests: tokens, sessions, `Host`, `Origin` and `Sec-Fetch-Site`.
//!
//! An address with a token works once: the browser that opens it gets a cookie, and the next address is offered. The page
//! itself shows nothing of the cluster and needs no cookie; everything below `/api` does. Cookies do not distinguish ports, so
//! other servers on this machine are same-site: `SameSite` does not keep their pages out, and `Origin` and
//! `Sec-Fetch-Site` do. A `Host` that is not our own is a name that another site has pointed here (DNS rebinding).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, Method, header};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::hosts::Hosts;
use crate::secret::{NoRandomness, Secret};

/// Browsers that may have a session at once; the oldest one ends for another.
const SESSIONS_MAX: usize = 16;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The secrets, and the names under which this dashboard is reached.
#[derive(Debug)]
pub(crate) struct Access {
    hosts: Mutex<Arc<Hosts>>,
    cookie: String,
    secrets: Mutex<Secrets>,
    /// The address with the present token.
    address: watch::Sender<String>,
}

#[derive(Debug)]
struct Secrets {
    token: Secret,
    sessions: VecDeque<Secret>,
}

impl Access {
    pub(crate) fn new(hosts: Hosts) -> Result<Self, NoRandomness> {
        let token = Secret::random()?;
        let (address, _) = watch::channel(address(&hosts, &token));
        // Cookies are shared by all ports of a host.
        let cookie = format!("kennel_dashboard_{}", hosts.port());
        let sessions = VecDeque::new();
        Ok(Self {
            hosts: Mutex::new(Arc::new(hosts)),
            cookie,
            secrets: Mutex::new(Secrets { token, sessions }),
            address,
        })
    }

    /// A new certificate has other names.
    pub(crate) fn set_hosts(&self, hosts: Hosts) {
        let hosts = Arc::new(hosts);
        *self.hosts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&hosts);
        let secrets = self.secrets();
        let new = address(&hosts, &secrets.token);
        self.address.send_if_modified(|address| {
            let is_new = *address != new;
            *address = new;
            is_new
        });
    }

    fn hosts(&self) -> Arc<Hosts> {
        Arc::clone(&self.hosts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The address that a browser can open: another one each time that one was used.
    pub(crate) fn address(&self) -> watch::Receiver<String> {
        self.address.subscribe()
    }

    /// Exchanges a token for the `Set-Cookie` header of a session.
    pub(crate) fn open(&self, token: &str) -> Result<Option<String>, NoRandomness> {
        let mut secrets = self.secrets();
        if !secrets.token.is(token) {
            return Ok(None);
        }
        let session = Secret::random()?;
        secrets.token = Secret::random()?;
        let secure = if self.hosts().is_tls() {
            "; Secure"
        } else {
            ""
        };
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict{secure}",
            self.cookie,
            session.text()
        );
        if secrets.sessions.len() >= SESSIONS_MAX {
            secrets.sessions.pop_front();
        }
        secrets.sessions.push_back(session);
        let next = address(&self.hosts(), &secrets.token);
        self.address.send_replace(next);
        Ok(Some(cookie))
    }

    /// What every request must have, also one for the page.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = single(headers, header::HOST.as_str());
        let hosts = self.hosts();
        match host.filter(|host| hosts.is_own(host)) {
            Some(_) => Ok(()),
            None => Err(Failure::wrong_host(&hosts.shown())),
        }
    }

    /// A request for a file of the page: of the page itself, or typed by a person; and as a document also from a link.
    pub(crate) fn check_file(headers: &HeaderMap, is_document: bool) -> Result<(), Failure> {
        match single(headers, SEC_FETCH_SITE) {
            _ if is_document => Ok(()),
            None if !headers.contains_key(SEC_FETCH_SITE) => Ok(()),
            Some("same-origin" | "none") => Ok(()),
            _ => Err(Failure::wrong_origin()),
        }
    }

    /// A request for data or a change: of the page itself, with a session.
    pub(crate) fn check_api(&self, method: &Method, headers: &HeaderMap) -> Result<(), Failure> {
        let site = single(headers, SEC_FETCH_SITE);
        // Old browsers do not send it.
        let same_site = match site {
            None => !headers.contains_key(SEC_FETCH_SITE),
            Some(site) => site == "same-origin",
        };
        let origin = single(headers, header::ORIGIN.as_str());
        let same_origin = match origin {
            // Browsers leave it out of same-origin requests that change nothing.
            None => *method == Method::GET && !headers.contains_key(header::ORIGIN),
            Some(origin) => self.hosts().is_own_origin(origin),
        };
        if !same_site || !same_origin {
            return Err(Failure::wrong_origin());
        }
        if self.has_session(headers) {
            Ok(())
        } else {
            Err(Failure::no_session())
        }
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let secrets = self.secrets();
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut given = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie)
            .map(|(_, value)| value);
        given.any(|value| secrets.sessions.iter().any(|session| session.is(value)))
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(hosts: &Hosts, token: &Secret) -> String {
    format!("{}/?token={}", hosts.shown(), token.text())
}

/// The value of a header that is there once and is text.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
