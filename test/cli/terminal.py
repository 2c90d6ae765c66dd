# Runs a program on a terminal of its own and types at it: terminal.py '[["wait for", "type"], ...]' words...
# Prints all that the terminal showed, then the exit code on a line of its own.
import json, os, pty, select, signal, sys, time

script, words = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(words[0], words)
shown, seen, deadline = b"", 0, time.time() + 20
while True:
    if time.time() > deadline:
        os.kill(pid, signal.SIGKILL)
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    if script and script[0][0].encode() in shown[seen:]:
        seen = len(shown)
        os.write(terminal, script.pop(0)[1].encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(shown.decode("utf8", "replace") + "\n" + str(status) + "\n")
