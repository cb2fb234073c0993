"""Runs a block of README.md, and at the same time decides its requests as the approver ann."""

import os
import sys
import threading

import fermata

person = fermata.Client(token=os.environ["PERSON_TOKEN"])
over = threading.Event()


def decide_all():
    while not over.wait(0.05):
        for request in person.requests()["items"]:
            approval = request["kind"] == "approval"
            person.decide(request, {"verb": "approve"} if approval else {"action": "pay"})


thread = threading.Thread(target=decide_all)
thread.start()
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        exec(compile(file.read(), sys.argv[1], "exec"), {"__name__": "__main__"})
finally:
    over.set()
    thread.join()
