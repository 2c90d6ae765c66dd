"""What people write with influxdb-python, each for a tenant of its own. Arguments: the port, then
user, password and what the tenant's series are called. Prints 'passed'."""

import sys

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

port, user, password, mark = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


def connect(name, secret):
    return InfluxDBClient(host="127.0.0.1", port=port, username=name, password=secret, database="py")


client = connect(user, password)
client.create_database("py")
points = [{"measurement": mark, "tags": {"host": mark}, "fields": {"value": float(i)}, "time": i} for i in range(50)]
assert client.write_points(points, time_precision="s", batch_size=20)
assert [m["name"] for m in client.get_list_measurements()] == [mark]
assert list(client.query("SELECT sum(value) FROM " + mark).get_points())[0]["sum"] == 1225

client.create_user("reader", "first")
client.grant_privilege("read", "py", "reader")
client.set_user_password("reader", "second")
assert {"user": "reader", "admin": False} in client.get_list_users()
assert client.get_list_privileges("reader") == [{"database": "py", "privilege": "READ"}]

tenant = user.split("@")[-1]
reader = connect("reader@" + tenant, "second")
assert list(reader.query("SELECT count(value) FROM " + mark).get_points())[0]["count"] == 50
for wrong, code in (
    (lambda: reader.write_points(points), 403),
    (lambda: reader.create_database("other"), 403),
    (lambda: connect("reader@" + tenant, "first").get_list_database(), 401),
):
    try:
        wrong()
    except InfluxDBClientError as error:
        assert error.code == code, error
    else:
        raise AssertionError(code)

client.revoke_privilege("all", "py", "reader")
client.drop_user("reader")
try:
    reader.query("SELECT * FROM " + mark)
except InfluxDBClientError as error:
    assert error.code == 401, error
else:
    raise AssertionError("a user that was dropped is let in")
print("passed")
