"""What people write with influxdb-python, run unchanged. Arguments: the port. Prints 'passed'."""

import sys

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

client = InfluxDBClient(host="127.0.0.1", port=int(sys.argv[1]), database="py", gzip=False)
assert client.ping().startswith("1."), client.ping()
client.create_database("py")
assert {"name": "py"} in client.get_list_database()

points = [
    {
        "measurement": "cpu",
        "tags": {"host": host},
        "time": 1451606400 + i * 10,
        "fields": {"value": i * 1.5, "n": i, "up": i % 2 == 0, "text": 'say "%d"' % i},
    }
    for host in ("a", "b c")
    for i in range(50)
]
assert client.write_points(points, time_precision="s", batch_size=30)
rows = list(client.query("SELECT * FROM cpu WHERE host = 'b c' LIMIT 2").get_points())
assert [row["value"] for row in rows] == [0, 1.5], rows
assert rows[1]["n"] == 1 and rows[1]["up"] is False and rows[1]["text"] == 'say "1"', rows

bound = client.query("SELECT count(value) FROM cpu WHERE host = $h", bind_params={"h": "a"})
assert list(bound.get_points()) == [{"time": "1970-01-01T00:00:00Z", "count": 50}], bound
grouped = client.query("SELECT mean(value) FROM cpu GROUP BY host")
assert [key[1] for key in grouped.keys()] == [{"host": "a"}, {"host": "b c"}], grouped
chunked = client.query("SELECT value FROM cpu", chunked=True, chunk_size=7)
assert sum(len(list(part.get_points())) for part in chunked) in (100, 7 * 14 + 2), chunked

packed = InfluxDBClient(host="127.0.0.1", port=int(sys.argv[1]), database="py", gzip=True)
assert packed.write_points([{"measurement": "packed", "fields": {"v": 1}}])
assert list(packed.query("SELECT v FROM packed").get_points())[0]["v"] == 1

client.create_retention_policy("week", "7d", 1, database="py", default=False)
names = [policy["name"] for policy in client.get_list_retention_policies("py")]
assert names == ["autogen", "week"], names
assert [m["name"] for m in client.get_list_measurements()] == ["cpu", "packed"]
client.delete_series(database="py", measurement="packed")
assert [m["name"] for m in client.get_list_measurements()] == ["cpu"]

for wrong in ("SELECT", "SELECT value FROM cpu WHERE"):
    try:
        client.query(wrong)
    except InfluxDBClientError as error:
        assert error.code == 400, error
    else:
        raise AssertionError(wrong)
try:
    InfluxDBClient(host="127.0.0.1", port=int(sys.argv[1]), database="nosuch").write_points(points)
except InfluxDBClientError as error:
    assert error.code == 404 and "database not found" in str(error), error
client.drop_database("py")
assert {"name": "py"} not in client.get_list_database()
print("passed")
