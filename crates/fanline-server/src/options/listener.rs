//! What clients of one listener show in place of what others do: the same for WebSocket and for MQTT.

use fanline_engine::auth::{ListenerAccess, Password};

use super::Auth;

/// What the engine has to know of it; `listener` is what a mistake is told of.
///
/// # Errors
/// Says what a listener cannot have of its own.
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
                "{listener}: users and accounts are those of the server"
            ));
        }
    };
    Ok(ListenerAccess {
        token,
        user,
        no_auth_user,
    })
}
