//! The dashboard at the monitoring port.

/// What the dashboard may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// There is none.
    Off,
    /// It shows, and changes nothing: whoever uses it may publish nothing but requests that read.
    #[default]
    ReadOnly,
    /// Its users may publish what their permissions allow, and those who see the whole server may close
    /// connections.
    Writable,
}

impl Dashboard {
    const NAMES: [(Dashboard, &'static str); 3] = [
        (Dashboard::Off, "off"),
        (Dashboard::ReadOnly, "read"),
        (Dashboard::Writable, "write"),
    ];

    /// The one of this name, in any case; `None` when there is none.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map(|(dashboard, _)| *dashboard)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = Self::NAMES.iter();
        all.find(|(dashboard, _)| *dashboard == self)
            .map_or("off", |(_, name)| name)
    }
}
