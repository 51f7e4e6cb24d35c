//! Credentials of one listener's clients, in place of the server's. For WebSocket and MQTT.

use fanline_engine::auth::{ListenerAccess, Password};

use super::Auth;

/// Returns the access rules of a listener. `listener` names it in errors.
///
/// # Errors
/// Returns the invalid option.
pub(super) fn access(
    listener: &str,
    auth: Option<&Auth>,
    no_auth_user: Option<String>,
) -> Result<ListenerAccess, String> {
    let (token, user) = match auth {
        None | Some(Auth::Open) => (None, None),
        Some(Auth::Token(token)) => (Some(Password::from(token.as_str())), None),
        Some(Auth::User { name, password }) => (
            None,
            Some((name.clone(), Password::from(password.as_str()))),
        ),
        Some(_) => {
            return Err(format!(
                "{listener}: users and accounts cannot be configured for one listener"
            ));
        }
    };
    Ok(ListenerAccess {
        token,
        user,
        no_auth_user,
    })
}
