//! Flags of the cluster.

use fanline_server::ClusterOptions;

use super::Refusal;

/// The given flags of the cluster.
#[derive(Default)]
pub(super) struct ClusterFlags {
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) no_advertise: Option<bool>,
    pub(super) connect_retries: Option<u32>,
    /// URLs, separated by commas.
    pub(super) routes: Option<String>,
}

impl ClusterFlags {
    /// Applies the flags to the options of the configuration file.
    ///
    /// # Errors
    ///
    /// Fails if an address is invalid, or if there are routes and no address to listen on.
    pub(super) fn apply(self, cluster: &mut Option<ClusterOptions>) -> Result<(), Refusal> {
        if let Some(url) = self.listen {
            let mut options = cluster.take().unwrap_or_default();
            options.listen_at(&url).map_err(Refusal::Other)?;
            *cluster = Some(options);
        }
        let Some(options) = cluster else {
            return match self.routes {
                None => Ok(()),
                Some(_) => Err(Refusal::Other(
                    "solicited routes require cluster capabilities, e.g. --cluster".into(),
                )),
            };
        };
        if let Some(routes) = self.routes {
            let urls = routes.split(',').map(str::trim);
            let urls = urls.filter(|url| !url.is_empty());
            options.routes = urls.map(str::to_owned).collect();
        }
        options.advertise = (self.advertise).or_else(|| options.advertise.take());
        options.no_advertise = self.no_advertise.unwrap_or(options.no_advertise);
        options.connect_retries = self.connect_retries.unwrap_or(options.connect_retries);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_the_file() {
        let mut cluster = None;
        let flags = ClusterFlags {
            listen: Some("nats://ada:secret@127.0.0.1:-1".into()),
            routes: Some("nats://a:1, nats://b:2".into()),
            connect_retries: Some(3),
            ..ClusterFlags::default()
        };
        assert!(flags.apply(&mut cluster).is_ok());
        let options = cluster.clone().unwrap();
        assert_eq!((&*options.host, options.port), ("127.0.0.1", 0));
        assert_eq!(options.user.as_deref(), Some("ada"));
        assert_eq!(options.password.as_deref(), Some("secret"));
        assert_eq!(options.routes, ["nats://a:1", "nats://b:2"]);
        assert_eq!(options.connect_retries, 3);
        let flags = ClusterFlags {
            listen: Some("nats://0.0.0.0:6222".into()),
            no_advertise: Some(true),
            ..ClusterFlags::default()
        };
        assert!(flags.apply(&mut cluster).is_ok());
        let options = cluster.unwrap();
        assert_eq!((&*options.host, options.port), ("0.0.0.0", 6222));
        assert_eq!(options.user, None);
        assert!(options.no_advertise);
        assert_eq!(options.routes.len(), 2);
    }
}
