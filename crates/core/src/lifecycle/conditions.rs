//! The conditions of a node that matter to its life, and what is said of a node that says nothing.

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
}

impl Says {
    /// Reads a condition's status; what is neither `True` nor `False` is unknown.
    pub fn read(status: &str) -> Self {
        match status {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It can run pods.
    Ready,
    /// Its memory is short.
    MemoryPressure,
    /// Its disk is short.
    DiskPressure,
    /// Its process numbers are short.
    PidPressure,
    /// Its network is not set up.
    NetworkUnavailable,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Ready,
        Self::MemoryPressure,
        Self::DiskPressure,
        Self::PidPressure,
        Self::NetworkUnavailable,
    ];
    /// Those that the node itself reports. Its network is somebody else's business.
    pub const OWN: [Self; 4] = [
        Self::Ready,
        Self::MemoryPressure,
        Self::DiskPressure,
        Self::PidPressure,
    ];

    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::MemoryPressure => "MemoryPressure",
            Self::DiskPressure => "DiskPressure",
            Self::PidPressure => "PIDPressure",
            Self::NetworkUnavailable => "NetworkUnavailable",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What each condition says, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions([Option<Says>; 5]);

impl Conditions {
    /// What this one says.
    pub fn get(&self, kind: Kind) -> Option<Says> {
        self.0[kind as usize]
    }

    /// Whether the node can run pods.
    pub fn ready(&self) -> Option<Says> {
        self.get(Kind::Ready)
    }

    /// From now on, this one says this.
    pub fn set(&mut self, kind: Kind, says: Says) {
        self.0[kind as usize] = Some(says);
    }
}

/// A condition that becomes unknown because its node is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Which.
    pub kind: Kind,
    /// The node has never said anything about it.
    pub never: bool,
}

impl Silence {
    /// One word for it.
    pub fn reason(self) -> &'static str {
        if self.never {
            "NodeStatusNeverUpdated"
        } else {
            "NodeStatusUnknown"
        }
    }

    /// For people.
    pub fn message(self) -> &'static str {
        if self.never {
            "Kubelet never posted node status."
        } else {
            "Kubelet stopped posting node status."
        }
    }
}

/// What becomes unknown when this node is silent: nothing, if that has been said already.
pub fn silence(conditions: &Conditions) -> Vec<Silence> {
    if conditions.ready() == Some(Says::Unknown) {
        return Vec::new();
    }
    let known = |kind: &Kind| conditions.get(*kind) != Some(Says::Unknown);
    let own = Kind::OWN.into_iter().filter(known);
    own.map(|kind| Silence {
        kind,
        never: conditions.get(kind).is_none(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(Kind, &str)], expected: &[(&str, &str)]) {
        let mut conditions = Conditions::default();
        for (kind, says) in given {
            conditions.set(*kind, Says::read(says));
        }
        let found: Vec<_> = silence(&conditions)
            .into_iter()
            .map(|silence| (silence.kind.name(), silence.reason()))
            .collect();
        assert_eq!(found, expected, "{given:?}");
    }

    #[test]
    fn what_a_silent_node_said_last_is_not_believed_any_more() {
        check(
            &[
                (Kind::Ready, "True"),
                (Kind::MemoryPressure, "False"),
                (Kind::DiskPressure, "Unknown"),
                (Kind::NetworkUnavailable, "True"),
            ],
            &[
                ("Ready", "NodeStatusUnknown"),
                ("MemoryPressure", "NodeStatusUnknown"),
                ("PIDPressure", "NodeStatusNeverUpdated"),
            ],
        );
        check(
            &[(Kind::Ready, "Unknown"), (Kind::MemoryPressure, "False")],
            &[],
        );
        let never = "NodeStatusNeverUpdated";
        check(
            &[],
            &[
                ("Ready", never),
                ("MemoryPressure", never),
                ("DiskPressure", never),
                ("PIDPressure", never),
            ],
        );
    }

    #[test]
    fn conditions_have_their_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("KernelDeadlock"), None);
    }
}
