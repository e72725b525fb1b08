//! The page of a model, made of its card: the `README.md` of its folder.

use leaps::observe::Estimate;
use leaps::store::{CARD, Card};
use leaps_report::markdown::wrapped;
use leaps_report::text::{fixed, sigmas, span, with_error};

/// The text of `README.md`.
pub fn page(card: &Card) -> String {
    let Card { name, target, network, parameters, training, sampling, speed } = card;
    let mut rows = vec![
        ("target", target.clone()),
        ("network", format!("{network}; {parameters} parameters")),
    ];
    rows.extend(training.command.as_ref().map(|words| ("training", format!("`{words}`"))));
    rows.extend(training.settings.as_ref().map(|file| ("settings", format!("`{file}`"))));
    rows.extend(training.source.as_ref().map(|source| ("source", source.clone())));
    rows.extend(training.from.as_ref().map(|from| ("started from", from.clone())));
    let mut how = format!("{} steps", training.steps);
    how += &training.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    how += &training.seconds.map_or(String::new(), |seconds| format!(", {}", span(seconds)));
    how += &training.machine.as_ref().map_or(String::new(), |on| format!(" on {on}"));
    rows.push(("trained for", how));
    let plain = |e: &Estimate| with_error(e.mean, e.error);
    let beside = |e: &Estimate| {
        let exact = e.exact.map(|x| {
            let off = sigmas(e.mean, e.error, x);
            format!("; exact {}, {off} sigmas", fixed(x, 8))
        });
        plain(e) + &exact.unwrap_or_default()
    };
    rows.push(("effective sample size", plain(&sampling.ess)));
    rows.push(("log Z", beside(&sampling.log_z)));
    rows.push(("energy per site", beside(&sampling.energy_per_site)));
    let seconds = format!("{:.2} s", speed.seconds);
    let command = format!("leaps sample --model {name} --walkers {} --json", speed.walkers);
    rows.push((
        "time of a sample",
        format!("{seconds}: `{command}` on {} cores, {}", speed.threads, speed.machine),
    ));
    let lines: String = rows.iter().map(|(key, value)| format!("| {key} | {value} |\n")).collect();
    wrapped(&format!(
        "# {name}\n\n```sh\nleaps sample --model {name}\n```\n\n| | |\n|---|---|\n{lines}\nEstimates are those of {} walkers by `events` \
         with {} intervals, seed {}, on {}; errors are standard errors in the last digits. This page is made of `{CARD}` by `leaps models --add`.\n",
        sampling.walkers, sampling.intervals, sampling.seed, sampling.device,
    ))
}

#[cfg(test)]
mod tests {
    use leaps::store::SHIPPED;

    use super::*;

    /// The folder of a shipped model in the repository.
    fn folder(name: &str) -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../leaps/models").join(name)
    }

    #[test]
    fn pages_say_what_cards_say_and_models_are_what_they_say() {
        for shipped in SHIPPED {
            let card = shipped.card().unwrap();
            assert_eq!(card.name, shipped.name);
            let written = std::fs::read_to_string(folder(&card.name).join("README.md")).unwrap();
            assert_eq!(written, page(&card), "make it again: leaps models --add");
            let model = shipped.model().unwrap();
            assert_eq!(model.training.steps, card.training.steps);
            assert_eq!(model.training.seed, card.training.seed);
            let log_z = card.sampling.log_z;
            assert!(log_z.z().is_none_or(|z| z.abs() < 5.0), "{log_z:?}");
        }
    }

    #[test]
    fn estimates_stand_beside_exact_values() {
        let mut card = SHIPPED[0].card().unwrap();
        card.sampling.log_z = Estimate::new(1.5, 0.25).with_exact(1.25);
        let text = page(&card);
        assert!(text.contains("| log Z | 1.5(3); exact 1.25000000, +1.0 sigmas |"), "{text}");
    }
}
