"""influxdb-python for a tenant that owes several seconds of its quota. Arguments: the port, user, password.
Prints 'passed'."""

import sys
import time

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBServerError

port, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]
client = InfluxDBClient(host="127.0.0.1", port=port, username=user, password=password, database="d")
points = [{"measurement": "python", "fields": {"value": float(i)}, "time": i} for i in range(50)]

refused = 0
began = time.time()
while True:
    try:
        assert client.write_points(points, time_precision="s")
        break
    except InfluxDBServerError as error:
        assert "timeout: RU limit, tenant=" + user in str(error), error
        refused += 1
assert refused > 0
assert time.time() - began > 4
# A query waits for as long as it takes.
assert list(client.query("SELECT count(value) FROM python").get_points())[0]["count"] == 50
print("passed")
