//! Tells how a run ended: each failure in a line, and a count for each kind of script.
//! It exists so that a fault can be found from the line alone.
//! It decides nothing.

use std::collections::HashMap;

use crate::{
    run::Failure,
    script::{Kind, Script},
};

/// The failures as a table, worst first, and a line for each kind.
pub(crate) fn table(scripts: &[Script], failures: &[Failure]) -> String {
    let mut rows: Vec<String> = failures
        .iter()
        .map(|failure| {
            let Failure {
                script,
                step,
                problem,
            } = failure;
            let kind = format!("{:?}", script.kind).to_lowercase();
            format!(
                "{kind:4} {:16} {:60} [{}] step {step}: {problem}",
                script.file, script.name, script.rule
            )
        })
        .collect();
    rows.sort_unstable();
    let mut failed: HashMap<String, usize> = HashMap::new();
    for failure in failures {
        *failed.entry(format!("{:?}", failure.script.kind)).or_default() += 1;
    }
    for kind in [Kind::Must, Kind::May, Kind::Own] {
        let all = scripts.iter().filter(|script| script.kind == kind).count();
        let wrong = failed.get(&format!("{kind:?}")).copied().unwrap_or(0);
        rows.push(format!("{kind:?}: {} of {all}", all - wrong));
    }
    rows.push("(condition | what came instead)".to_owned());
    rows.join("\n")
}
