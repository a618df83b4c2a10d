use super::*;

#[test]
fn a_port_that_is_not_there_is_named() {
    let err = SerialPort::open("/dev/ttyACM-none").unwrap_err();
    assert!(matches!(&err, Error::PortNotFound { path } if path == "/dev/ttyACM-none"), "{err:?}");
    assert!(err.to_string().ends_with("/dev/ttyACM-none"));
    let err = SerialPort::open_by_usb_serial("no such adapter").unwrap_err();
    assert!(matches!(&err, Error::AdapterGone { serial, .. } if serial == "no such adapter"), "{err:?}");
}

#[test]
fn a_port_without_permission_says_what_to_do() {
    let denied = serialport::Error::new(ErrorKind::Io(IoErrorKind::PermissionDenied), "denied");
    let text = open_error("/dev/null", denied).to_string();
    assert!(text.contains("dialout") && text.contains("udev") && text.ends_with("/dev/null"), "{text}");
}

#[cfg(unix)]
mod on_a_pseudo_terminal {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn bytes_pass_and_a_deadline_ends_a_read() {
        let (mut master, slave) = serialport::TTYPort::pair().unwrap();
        let path = serialport::SerialPort::name(&slave).unwrap();
        // The other end stays open, or the terminal would be at its end.
        let mut port = SerialPort::open(&path).unwrap();
        assert!(port.adapter().is_none());
        port.write_all(&[1, 2, 3]).unwrap();
        let mut got = [0; 3];
        master.read_exact(&mut got).unwrap();
        assert_eq!(got, [1, 2, 3]);

        master.write_all(&[9; 5]).unwrap();
        let mut buffer = [0; 8];
        let deadline = port.now() + Duration::from_secs(2);
        assert_eq!(port.read(&mut buffer, deadline).unwrap(), 5);
        let passed = port.now();
        assert_eq!(port.read(&mut buffer, passed).unwrap(), 0);

        master.write_all(&[7; 5]).unwrap();
        port.discard_input().unwrap();
        let passed = port.now();
        assert_eq!(port.read(&mut buffer, passed).unwrap(), 0);
        drop(slave);
    }

    #[test]
    fn a_second_handle_sends_and_a_reopened_port_goes_on() {
        let (mut master, slave) = serialport::TTYPort::pair().unwrap();
        let path = serialport::SerialPort::name(&slave).unwrap();
        let mut port = SerialPort::open(&path).unwrap();
        let mut got = [0; 2];
        port.emergency_writer().unwrap().write_frame(&[8, 9]).unwrap();
        master.read_exact(&mut got).unwrap();
        assert_eq!(got, [8, 9]);

        let before = port.now();
        port.reopen().unwrap();
        port.write_all(&[4, 5]).unwrap();
        master.read_exact(&mut got).unwrap();
        assert_eq!((got, port.path()), ([4, 5], path.as_str()));
        assert!(port.now() >= before);

        drop((master, slave));
        assert!(matches!(port.reopen(), Err(Error::PortNotFound { .. } | Error::PortIo { .. })));
        assert!(matches!(port.write_all(&[1]), Err(Error::PortIo { doing: "write to", .. })));
        assert!(port.emergency_writer().is_none());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_adapter_is_found_again_by_its_serial_number_under_another_path() {
    let root = tempfile::tempdir().unwrap();
    let plug = |node: &str, serial: &str| {
        let class = root.path().join("sys/class/tty").join(node);
        let usb = root.path().join("sys/devices/usb1").join(node);
        let interface = usb.join("interface");
        std::fs::create_dir_all(&interface).unwrap();
        std::fs::create_dir_all(&class).unwrap();
        std::fs::create_dir_all(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join("dev").join(node), "").unwrap();
        for (file, text) in [("idVendor", "1a86\n"), ("idProduct", "55d3\n"), ("serial", serial)] {
            std::fs::write(usb.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink(&interface, class.join("device")).unwrap();
    };
    plug("ttyACM0", "A1\n");
    plug("ttyACM1", "B2\n");
    let discovery = Discovery::at(root.path());
    let adapter = discovery.ports().into_iter().find(|p| p.serial.as_deref() == Some("B2")).unwrap();
    assert_eq!(path_of(&adapter, &adapter.path, &discovery).unwrap(), adapter.path);
    // Another adapter has the old name now.
    let other = discovery.ports().into_iter().find(|p| p.serial.as_deref() == Some("A1")).unwrap();
    assert_eq!(path_of(&adapter, &other.path, &discovery).unwrap(), adapter.path);
    let gone = PortInfo { serial: Some("C3".to_string()), ..adapter };
    let err = path_of(&gone, "/dev/ttyACM7", &discovery).unwrap_err().to_string();
    assert!(err.contains("C3") && err.ends_with("/dev/ttyACM7"), "{err}");
}
