//! What `find_port` prints.

use std::fmt::Write as _;

use so101_hal::discovery::{Likelihood, Match, Misplaced, PortAccess, PortInfo, RULES_FILE, link_rule};

use super::{FindPortArgs, Found, FoundArm, Known, known};

/// Differences that are listed of an arm that is near a file.
const MAX_DIFFERENCES: usize = 6;

/// The adapter in a few words.
pub(super) fn kind(port: &PortInfo) -> String {
    if port.permission == PortAccess::Missing {
        return "is not there".to_owned();
    }
    let mut words = Vec::new();
    match (port.adapter, port.usb_id()) {
        (Some(adapter), Some(id)) => words.push(format!("{} ({id})", adapter.chip)),
        (None, Some(id)) => words.push(format!("{} ({id})", port.product.as_deref().unwrap_or("USB device"))),
        _ => words.push("no USB device".to_owned()),
    }
    if port.vid.is_some() {
        words.push(match &port.serial {
            Some(serial) => format!("serial {serial}"),
            None => "no serial number".to_owned(),
        });
    }
    words.join(", ")
}

/// A block a port.
pub(super) fn text(ports: &[Found], known: &[Known], identified: bool) -> String {
    let mut out = String::new();
    for found in ports {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}  {}", found.port.path, kind(&found.port));
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "  {key:<7} {value}");
        };
        let boards = found.port.adapter.map_or("no adapter that servo boards have", |a| a.boards);
        if found.port.permission != PortAccess::Missing {
            line("is", &format!("{} ({boards})", likelihood(found.likelihood)));
        }
        if found.use_path != found.port.path {
            line("use", &found.use_path);
        }
        line("access", &access(&found.port.permission));
        if let Some(fix) = &found.fix {
            line("fix", fix);
        }
        if let Some(error) = &found.error {
            line("error", error);
        }
        if let Some(arm) = &found.arm {
            for (key, value) in arm_lines(arm) {
                line(key, &value);
            }
        }
    }
    if ports.is_empty() {
        out.push_str("no port with an adapter of a servo bus\n");
    }
    if identified && known.is_empty() {
        out.push_str("no calibration files to compare with\n");
    }
    out
}

const fn likelihood(likelihood: Likelihood) -> &'static str {
    match likelihood {
        Likelihood::Likely => "likely a servo bus",
        Likelihood::Possible => "possibly a servo bus",
        Likelihood::Unlikely => "hardly a servo bus",
    }
}

fn access(access: &PortAccess) -> String {
    match access {
        PortAccess::Granted => "granted".to_owned(),
        PortAccess::Denied { group: Some(group), .. } => format!("denied, the group {group} may"),
        PortAccess::Denied { group: None, .. } => "denied".to_owned(),
        PortAccess::Held { by } => {
            let names: Vec<String> = by.iter().map(ToString::to_string).collect();
            format!("held by {}", names.join(", "))
        }
        PortAccess::Missing => "there is no such device".to_owned(),
        _ => "this system does not tell".to_owned(),
    }
}

fn arm_lines(arm: &FoundArm) -> Vec<(&'static str, String)> {
    let role = arm.role.map_or(String::new(), |r| format!("; its registers are a {}'s", known::role_name(r)));
    let mut lines = Vec::new();
    match &arm.calibration {
        Match::Exact { ids } => lines.push(("arm", format!("{}, exactly{role}", ids.join(" or ")))),
        Match::Near { id, differences } => {
            lines.push(("arm", format!("{id}, but for {} values{role}", differences.len())));
            lines.extend(differences.iter().take(MAX_DIFFERENCES).map(|d| ("", d.to_string())));
            if differences.len() > MAX_DIFFERENCES {
                lines.push(("", format!("and {} more", differences.len() - MAX_DIFFERENCES)));
            }
        }
        Match::Uncalibrated => {
            lines.push(("arm", format!("{} servos that nobody has calibrated", arm.answered)));
        }
        Match::Silent => lines.push((
            "arm",
            "no servo answers: check its supply and the cable, or it is another device".to_owned(),
        )),
        _ => {
            lines
                .push(("arm", format!("{} servos of an arm without a calibration file{role}", arm.answered)));
        }
    }
    if (1..6).contains(&arm.answered) {
        lines.push(("servos", format!("{} of 6 answer: run the diagnose example", arm.answered)));
    }
    lines
}

/// Rules for all adapters that may lead to an arm.
pub(super) fn udev(ports: &[Found]) -> String {
    let infos: Vec<PortInfo> = ports.iter().map(|p| p.port.clone()).collect();
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    for found in ports.iter().filter(|p| p.is_candidate()) {
        let arm = found.arm.as_ref();
        let role = arm.and_then(|a| a.role).map(|r| format!("so101_{}", known::role_name(r)));
        let by_file = arm.and_then(FoundArm::id).map(|name| {
            if name == known::id_of(name) {
                format!("so101_{name}")
            } else {
                format!("so101_{}", name.split(' ').next().unwrap_or("arm"))
            }
        });
        let wanted = by_file.or(role).unwrap_or_else(|| "so101_arm".to_owned());
        let twice = names.iter().filter(|n| **n == wanted).count();
        names.push(wanted.clone());
        let name = if twice == 0 { wanted } else { format!("{wanted}_{}", twice + 1) };
        if let Some(rule) = link_rule(&found.port, &name, &infos) {
            let _ = writeln!(out, "# {} {}", found.port.path, kind(&found.port));
            let _ = writeln!(out, "{rule}");
        }
    }
    out
}

/// An arm that is elsewhere.
pub(super) fn misplaced(arm: &Misplaced) -> String {
    match &arm.found_port {
        Some(port) => format!("{} is not on {} but on {port}", arm.id, arm.expected_port),
        None => format!("{} is not on {}, nor on another port that was asked", arm.id, arm.expected_port),
    }
}

/// What to do next, for stderr.
pub(super) fn hints(args: &FindPortArgs, ports: &[Found]) -> Vec<String> {
    let mut hints = Vec::new();
    if ports.is_empty() {
        hints.push(
            "plug the adapter in (and its supply), watch it come with --watch, or try --rig emulated"
                .to_owned(),
        );
    } else if args.udev {
        hints.push(format!(
            "to install: the same command | sudo tee {RULES_FILE}; sudo udevadm control --reload; sudo udevadm trigger"
        ));
    } else if !args.identify && args.rig.is_none() && args.root.is_none() {
        hints.push("which arm is which: --identify; a name for each: --identify --udev".to_owned());
    }
    hints
}
