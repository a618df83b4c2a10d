//! USB adapters by their descriptors, through libusb (feature `usb`).
//!
//! [`Discovery`](super::Discovery) needs none of this on Linux. It is for systems whose port list does not tell the
//! adapter's ids, and for hot-plug events without polling. Events were not run with a device.

use std::boxed::Box;
use std::string::{String, ToString as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::vec::Vec;

use rusb::{Context, Device, Hotplug, HotplugBuilder, UsbContext as _};
use serde::Serialize;

use super::adapter::{Adapter, adapter};
use crate::error::{Error, Result};

/// How long one wait for events lasts before [`HotPlug::run`] looks whether it shall end.
const EVENT_WAIT: Duration = Duration::from_millis(200);

/// A USB device that may be a servo bus adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsbAdapter {
    /// Vendor id.
    pub vid: u16,
    /// Product id.
    pub pid: u16,
    /// The kernel's name of the socket, such as `1-1.2`.
    pub socket: String,
    /// Release of the device, such as `1.0.4`: boards with the same chip differ here.
    pub release: String,
    /// Serial number; `None` where it has none, this user may not open the device, or the adapter came with an event:
    /// libusb transfers nothing while it delivers events. The same holds for the other texts.
    pub serial: Option<String>,
    /// What it calls itself.
    pub product: Option<String>,
    /// Who it says has made it.
    pub manufacturer: Option<String>,
    /// What is known about its ids.
    pub adapter: Adapter,
}

/// The adapters that are plugged in and known by their ids. Descriptors are read; no interface is claimed.
///
/// # Errors
/// [`Error::Usb`] when libusb cannot list devices.
pub fn list_adapters() -> Result<Vec<UsbAdapter>> {
    let context = Context::new().map_err(|e| usb_error("start", e))?;
    let devices = context.devices().map_err(|e| usb_error("list the devices of", e))?;
    Ok(devices.iter().filter_map(|d| describe(&d)).collect())
}

/// What the descriptor says; `None` for other devices.
fn describe(device: &Device<Context>) -> Option<UsbAdapter> {
    let descriptor = device.device_descriptor().ok()?;
    let (vid, pid) = (descriptor.vendor_id(), descriptor.product_id());
    let known = *adapter(vid, pid)?;
    let (mut serial, mut product, mut manufacturer) = (None, None, None);
    // Texts need the device to be opened, which a user without rights may not.
    if let Ok(handle) = device.open() {
        serial = handle.read_serial_number_string_ascii(&descriptor).ok().map(clean);
        product = handle.read_product_string_ascii(&descriptor).ok().map(clean);
        manufacturer = handle.read_manufacturer_string_ascii(&descriptor).ok().map(clean);
    }
    Some(UsbAdapter {
        vid,
        pid,
        socket: socket(device),
        release: descriptor.device_version().to_string(),
        serial,
        product,
        manufacturer,
        adapter: known,
    })
}

fn clean(text: String) -> String {
    text.trim().chars().filter(|c| !c.is_control()).collect()
}

fn socket(device: &Device<Context>) -> String {
    let ports: Vec<String> = device.port_numbers().unwrap_or_default().iter().map(u8::to_string).collect();
    std::format!("{}-{}", device.bus_number(), ports.join("."))
}

/// An adapter that was plugged in or out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsbEvent {
    /// Plugged in.
    Arrived {
        /// What it is.
        adapter: UsbAdapter,
    },
    /// Unplugged: only ids and socket are known.
    Left {
        /// What it was.
        adapter: UsbAdapter,
    },
}

/// Waits for hot-plug events.
pub struct HotPlug {
    context: Context,
    _registration: rusb::Registration<Context>,
}

impl core::fmt::Debug for HotPlug {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HotPlug").finish_non_exhaustive()
    }
}

impl HotPlug {
    /// Registers `on_event`; adapters that are there already arrive at once.
    ///
    /// # Errors
    /// [`Error::Usb`] where libusb has no hot-plug events (Windows).
    pub fn new(on_event: impl FnMut(UsbEvent) + Send + 'static) -> Result<Self> {
        let context = Context::new().map_err(|e| usb_error("start", e))?;
        let handler = Box::new(Handler(on_event));
        let registration = HotplugBuilder::new()
            .enumerate(true)
            .register(&context, handler)
            .map_err(|e| usb_error("register for the events of", e))?;
        Ok(Self { context, _registration: registration })
    }

    /// Delivers events until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Usb`] when libusb fails.
    pub fn run(&self, stop: &Arc<AtomicBool>) -> Result<()> {
        while !stop.load(Ordering::Acquire) {
            self.context.handle_events(Some(EVENT_WAIT)).map_err(|e| usb_error("handle the events of", e))?;
        }
        Ok(())
    }
}

struct Handler<F>(F);

impl<F: FnMut(UsbEvent) + Send> Hotplug<Context> for Handler<F> {
    fn device_arrived(&mut self, device: Device<Context>) {
        if let Some(adapter) = describe(&device) {
            (self.0)(UsbEvent::Arrived { adapter });
        }
    }

    fn device_left(&mut self, device: Device<Context>) {
        if let Some(adapter) = describe(&device) {
            (self.0)(UsbEvent::Left { adapter });
        }
    }
}

fn usb_error(doing: &'static str, source: rusb::Error) -> Error {
    Error::Usb { doing, source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_listed_where_libusb_can_list_them() {
        match list_adapters() {
            Ok(found) => assert!(found.iter().all(|a| a.adapter.vid == a.vid)),
            Err(e) => assert!(matches!(e, Error::Usb { .. }), "{e}"),
        }
    }
}
