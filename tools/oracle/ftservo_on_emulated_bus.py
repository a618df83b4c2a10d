#!/usr/bin/env python3
"""The vendor's other client, ftservo-python-sdk, on this project's emulated servos.

    python ftservo_on_emulated_bus.py --program target/release/examples/emulated_bus
"""
import argparse

from emulated_bus import Checks, EmulatedBus, eventually


def check(checks, emulated):
    import scservo_sdk as sdk

    port = sdk.PortHandler(emulated.link)
    assert port.openPort()
    servo = sdk.sms_sts(port)
    checks.equal("ping", [servo.ping(i) for i in range(1, 7)], [(777, sdk.COMM_SUCCESS, 0)] * 6)
    checks.equal("ping of an id that is not there", servo.ping(7)[1], sdk.COMM_RX_TIMEOUT)
    for i in range(1, 7):
        emulated.place(i, 1900 + 50 * i)
    checks.equal("ReadPos", [servo.ReadPos(i) for i in range(1, 7)],
                 [(1900 + 50 * i, sdk.COMM_SUCCESS, 0) for i in range(1, 7)])
    checks.equal("WritePosEx", servo.WritePosEx(2, 2600, 2400, 50), (sdk.COMM_SUCCESS, 0))
    fastest, place = 0, 0

    def arrived():
        nonlocal fastest, place
        place, speed, result, error = servo.ReadPosSpeed(2)
        fastest = max(fastest, speed)
        return (result, error, place) == (sdk.COMM_SUCCESS, 0, 2600)

    checks.that("ReadPosSpeed: it gets there", eventually(arrived), place)
    checks.that("ReadPosSpeed: it moved, no faster than it may", 0 < fastest <= 2400, fastest)
    checks.equal("WriteSpec of a negative speed", servo.WriteSpec(4, -300, 20), (sdk.COMM_SUCCESS, 0))
    checks.equal("and its sign in the register", emulated.register(4, "Goal_Velocity"), -300)
    checks.equal("RegWritePosEx", servo.RegWritePosEx(5, 2100, 0, 0), (sdk.COMM_SUCCESS, 0))
    before = emulated.register(5, "Goal_Position")
    servo.RegAction()
    # Nobody answers it, so it may still be on its way.
    checks.that("RegAction starts it", before != 2100 and eventually(
        lambda: emulated.register(5, "Goal_Position") == 2100), before)

    for i in range(1, 7):
        assert servo.SyncWritePosEx(i, 2000 + 10 * i, 1000, 50)
    checks.equal("SyncWritePosEx", servo.groupSyncWrite.txPacket(), sdk.COMM_SUCCESS)
    servo.groupSyncWrite.clearParam()
    checks.that("SyncWritePosEx reached all", eventually(
        lambda: [servo.ReadPos(i)[0] for i in range(1, 7)] == [2000 + 10 * i for i in range(1, 7)]))

    group = sdk.GroupSyncRead(servo, sdk.SMS_STS_PRESENT_POSITION_L, 8)
    for i in range(1, 7):
        group.addParam(i)
    checks.equal("GroupSyncRead 6 x 8 bytes", group.txRxPacket(), sdk.COMM_SUCCESS)
    rows = []
    for i in range(1, 7):
        there, error = group.isAvailable(i, sdk.SMS_STS_PRESENT_POSITION_L, 8)
        rows.append((there, error, group.getData(i, sdk.SMS_STS_PRESENT_POSITION_L, 2),
                     group.getData(i, sdk.SMS_STS_PRESENT_VOLTAGE, 1), group.getData(i, sdk.SMS_STS_PRESENT_TEMPERATURE, 1)))
    checks.equal("position, voltage and temperature of all", rows, [(True, 0, 2000 + 10 * i, 74, 30) for i in range(1, 7)])

    servo.unLockEprom(1)
    servo.write2ByteTxRx(1, sdk.SMS_STS_OFS_L, servo.scs_toscs(-709, 11))
    servo.LockEprom(1)
    servo.write2ByteTxRx(1, sdk.SMS_STS_MIN_ANGLE_LIMIT_L, 100)
    emulated.tell("power cycle")
    kept = [emulated.register(1, r) for r in ("Homing_Offset", "Min_Position_Limit")]
    checks.equal("the EEPROM keeps what was written unlocked, no more", kept, [-709, 0])
    emulated.tell("err 1 32 3")
    checks.equal("an alarm comes with the data", servo.ReadPos(3), (2030, sdk.COMM_SUCCESS, 32))
    emulated.tell("clear")
    port.closePort()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--program", required=True, help="the built example emulated_bus")
    a = ap.parse_args()
    checks = Checks()
    for options in ([], ["--wire"]):
        emulated = EmulatedBus(a.program, *options)
        check(checks, emulated)
        emulated.close()
    checks.end("ftservo-python-sdk 2.0.1")


if __name__ == "__main__":
    main()
