//! Places in the code, as pages name them.

use rperf_report::Function;
use rperf_report::one_line::{function_name, one_line};

/// The application's function and line; empty without one.
pub fn line(app: &Option<(Function, u32)>) -> String {
    app.as_ref().map_or_else(String::new, |_| place(&None, app))
}

/// A method, and the application's own one that leads to it.
pub fn place(method: &Option<Function>, app: &Option<(Function, u32)>) -> String {
    let own = app.as_ref().map(|(function, line)| {
        let path = one_line(&function.short_path);
        let at = match line {
            0 => path.into_owned(),
            line => format!("{path}:{line}"),
        };
        (function, format!("{}  {at}", function_name(&function.name)))
    });
    match (method, own) {
        (Some(method), Some((function, own))) if method.name != function.name => {
            format!("{}, in {own}", function_name(&method.name))
        }
        (_, Some((_, own))) => own,
        (Some(method), None) => function_name(&method.name).into_owned(),
        (None, None) => "(no stack)".into(),
    }
}
