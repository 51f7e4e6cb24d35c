//! Options of the dashboard on the monitoring port.

/// Permissions of the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// The dashboard is not served.
    Off,
    /// The dashboard displays, but changes nothing. Its users may publish only requests that change nothing.
    #[default]
    ReadOnly,
    /// Dashboard users may publish what their permissions allow. Users with access to the whole server may
    /// close connections.
    Writable,
}

impl Dashboard {
    const NAMES: [(Dashboard, &'static str); 3] = [
        (Dashboard::Off, "off"),
        (Dashboard::ReadOnly, "read"),
        (Dashboard::Writable, "write"),
    ];

    /// Parses a name in any case.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map(|(dashboard, _)| *dashboard)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let mut all = Self::NAMES.iter();
        all.find(|(dashboard, _)| *dashboard == self)
            .map_or("off", |(_, name)| name)
    }
}
