//! Who drives, as the command line says.

use std::sync::mpsc::channel;

use so101_hal::teleop::{Keyboard, Keys, Leader, LeaderOptions, Script, Scripted};

use super::args::{RecordArgs, TeleopChoice};
use super::driver::{Driver, Teleop};
use super::keys::Operator;
use crate::cli::say;
use crate::error::{Error, Result};
use crate::expert::LeftOf;
use crate::hardware::{Pace, Role};
use crate::plan::{EpisodeSetup, Plan, PlanKind};
use crate::teleoperate::with_pair;

/// Who drives the arm for a whole session.
#[derive(Debug)]
pub enum Who {
    /// The plan's own demonstrator: the expert, or a visit of the object's place.
    Demonstrator,
    /// The expert of push-left.
    Expert,
    /// A visit of the object's place.
    Visit,
    /// Somebody, or a script.
    Teleop(Teleop),
}

impl Who {
    /// Decides, and connects to the leader arm where there is one. An operator is there where time is real.
    ///
    /// # Errors
    /// [`Error::Usage`] where a real arm has nobody who drives it, or a simulated one somebody who would have to keep up
    /// with it; errors of the leader's port and calibration and of the script.
    pub fn of(args: &RecordArgs, plan: &Plan, operator: Option<&mut Operator>) -> Result<Self> {
        let Some(choice) = args.teleop else {
            return match operator {
                None => Ok(Self::Demonstrator),
                Some(_) => Err(Error::Usage(
                    "--rig real: who drives the arm? give --teleop leader with --leader-port and --leader-id, --teleop \
                     keyboard, or --teleop scripted; --rig emulated needs nobody"
                        .to_owned(),
                )),
            };
        };
        if args.script.is_some() && choice != TeleopChoice::Scripted {
            return Err(Error::Usage("--script is for --teleop scripted".to_owned()));
        }
        match (choice, operator) {
            (TeleopChoice::Expert, _) if plan.kind() != PlanKind::PushLeft => Err(Error::Usage(format!(
                "--teleop expert: only push-left has a demonstrator, '{}' has none; use leader, keyboard or scripted",
                plan.task()
            ))),
            (TeleopChoice::Expert, _) => Ok(Self::Expert),
            (TeleopChoice::Scripted, _) => match &args.script {
                None => Ok(Self::Visit),
                Some(path) => {
                    let scripted = Scripted::from_script(Script::load_json(path)?)?;
                    Ok(Self::Teleop(Teleop::new(Box::new(scripted))))
                }
            },
            (TeleopChoice::Keyboard, Some(operator)) => {
                let (sender, keys) = channel();
                operator.steer(sender);
                say(&format!("the arm: {}", Keys::Hand.legend()));
                Ok(Self::Teleop(Teleop::new(Box::new(Keyboard::new(keys)))))
            }
            (TeleopChoice::Leader, Some(_)) => {
                let arm = args.real.leader();
                if arm.port.is_none() {
                    return Err(Error::Usage(
                        "--teleop leader: name the port of the leader arm with --leader-port".to_owned(),
                    ));
                }
                let (calibration, _) = arm.calibration(Role::Leader)?;
                let bus = arm.open(Role::Leader, Pace::RealTime)?.bus;
                let follower = args.real.id.as_deref();
                let options = with_pair(LeaderOptions::default(), arm.id.as_deref(), follower)?;
                let leader = Leader::connect(bus, calibration, options)?;
                Ok(Self::Teleop(Teleop::new(Box::new(leader))))
            }
            (TeleopChoice::Keyboard | TeleopChoice::Leader, None) => Err(Error::Usage(
                "--teleop leader and keyboard drive an arm in real time: use them with --rig real or --rig emulated"
                    .to_owned(),
            )),
        }
    }

    /// The driver of one episode.
    ///
    /// # Errors
    /// As [`Driver::demonstrator`].
    pub fn driver(&mut self, plan: &Plan, setup: &EpisodeSetup, left_of: LeftOf) -> Result<Driver<'_>> {
        match self {
            Self::Demonstrator => Driver::demonstrator(plan, setup, left_of),
            Self::Expert => Driver::expert(plan, setup, left_of),
            Self::Visit => Driver::visit(plan, setup, left_of),
            Self::Teleop(teleop) => Ok(Driver::Teleop(teleop)),
        }
    }
}
