//! Every register of every servo, with its unit.

use std::fmt::Write as _;

use serde_json::{Value, json};
use so101_hal::preflight::Survey;
use so101_hal::registers::{Area, Register, TABLE, Unit};

/// A value in the unit that people think in.
fn human(register: &Register, value: i32) -> String {
    let v = f64::from(value);
    match register.unit {
        Unit::Permille => format!("{:.1}", v / 10.0),
        Unit::Decivolt => format!("{:.1}", v / 10.0),
        Unit::Milliampere6_5 => format!("{:.0}", v * 6.5),
        Unit::Centisecond => format!("{}", value * 10),
        Unit::Microsecond2 => format!("{}", value * 2),
        Unit::HundredStepPerSecond2 => format!("{}", value * 100),
        Unit::Count | Unit::Step | Unit::StepPerSecond | Unit::Percent | Unit::Celsius => value.to_string(),
        _ => value.to_string(),
    }
}

const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "step",
        Unit::StepPerSecond => "step/s",
        Unit::HundredStepPerSecond2 => "step/s2",
        Unit::Permille | Unit::Percent => "%",
        Unit::Decivolt => "V",
        Unit::Celsius => "C",
        Unit::Milliampere6_5 => "mA",
        Unit::Centisecond => "ms",
        Unit::Microsecond2 => "us",
        _ => "",
    }
}

/// A table: a line a register, a column a servo.
pub(super) fn to_text(survey: &Survey) -> String {
    let width = TABLE.iter().map(|r| short(r).len()).max().unwrap_or(0);
    let mut out = format!("{:<width$}  addr", "registers");
    for (joint, m) in survey.answering() {
        let _ = write!(out, " {:>14}", format!("{} {joint}", m.id()));
    }
    out.push('\n');
    let mut area = None;
    for register in TABLE {
        if area != Some(register.area) {
            area = Some(register.area);
            let name =
                if register.area == Area::Eeprom { "EEPROM, kept" } else { "RAM, lost with the power" };
            let _ = writeln!(out, "  {name}");
        }
        let _ = write!(out, "{:<width$}  {:>4}", short(register), register.address);
        for (_, m) in survey.answering() {
            let _ = write!(out, " {:>14}", human(register, m.value(register)));
        }
        let _ = writeln!(out, " {}", unit_name(register.unit));
    }
    out
}

/// LeRobot's name, without the part that makes three of them very long.
fn short(register: &Register) -> String {
    register.name.replace("Velocity_closed_loop_", "Velocity_")
}

/// Raw values by LeRobot's names, so that dumps compare.
pub(super) fn to_json(survey: &Survey) -> Value {
    let servos = survey.servos.iter().map(|s| {
        let registers = s.memory.as_ref().ok().map(|m| {
            TABLE.iter().map(|r| (r.name.to_owned(), json!(m.value(r)))).collect::<serde_json::Map<_, _>>()
        });
        json!({ "id": s.id.get(), "joint": s.joint.name(), "registers": registers })
    });
    Value::Array(servos.collect())
}
