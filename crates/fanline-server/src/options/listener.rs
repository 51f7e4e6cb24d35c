//! Credentials of the clients of one listener (WebSocket or MQTT), in place of the server's credentials.

use fanline_engine::auth::{ListenerAccess, Password};

use super::Auth;

/// Returns the access rules of a listener. `listener` is its name in errors.
///
/// # Errors
///
/// Fails if an option is invalid.
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
