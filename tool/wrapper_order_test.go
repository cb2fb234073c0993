package tool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

type wrapper struct {
	name string
	wrap func(*tool.Tool) *tool.Tool
}

var wrappers = []wrapper{
	{"approve", func(t *tool.Tool) *tool.Tool { return tool.Approve(t) }},
	{"review", func(t *tool.Tool) *tool.Tool { return tool.Review(t) }},
	{"guard", func(t *tool.Tool) *tool.Tool { return tool.Guard(t, ruling(fermata.Allow, "")) }},
	{"follow up", func(t *tool.Tool) *tool.Tool { return tool.FollowUp(t, tool.Needs[ticket](from)) }},
	{"tell", tool.ReportErrors},
}

// orders calls do with every order of the wrappers.
func orders(list []wrapper, do func([]wrapper)) {
	var arrange func(done, left []wrapper)
	arrange = func(done, left []wrapper) {
		if len(left) == 0 {
			do(done)
		}
		for i, w := range left {
			arrange(append(slices.Clone(done), w), slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	arrange(nil, list)
}

// course answers all interrupts of a call, and returns what happened.
func course(t *testing.T, r *railway, tl *tool.Tool) string {
	t.Helper()
	call := newRun(t, tl, `{"to":"ORY"}`)
	var happened []string
	got, err := call.start()
	for range 5 {
		if _, waits := fermata.ExtractInterruptInfo(err); !waits {
			break
		}
		var answer any
		switch ic := waitsFor(t, err); ic.Kind {
		case tool.Completion.Name():
			happened = append(happened, "complete "+string(completion(t, err).Args))
			answer = fields("from", `"CDG"`)
		case fermata.Approval.Name():
			happened = append(happened, "approve "+string(approval(t, err).Args))
			answer = yes()
		case tool.Response.Name():
			happened = append(happened, "respond")
			answer = tool.HumanResponse{Text: "by hand"}
		}
		if len(r.booked) > 0 {
			t.Error("it was booked before all questions were answered")
		}
		got, err = call.answer(err, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(happened, fmt.Sprintf("%q after %+v", got.Text, r.booked)), "; ")
}

func TestI6_WrappersInAnyOrderAskOnceAboutTheCompletedArgumentsAndRunThose(t *testing.T) {
	const want = `complete {"to":"ORY"}; approve {"from":"CDG","to":"ORY"}; "booked CDG-ORY" after [{From:CDG To:ORY Seat:0}]`
	orders(wrappers, func(order []wrapper) {
		var r railway
		tl, names := r.tool(), []string{}
		for _, w := range order {
			tl, names = w.wrap(tl), append(names, w.name)
		}
		if got := course(t, &r, tl); got != want {
			t.Errorf("%v:\n\tgot  %s\n\twant %s", names, got, want)
		}
	})
}

func TestI6_RespondTakesTheToolsPlaceInAnyOrder(t *testing.T) {
	const want = `complete {"to":"ORY"}; approve {"from":"CDG","to":"ORY"}; respond; "by hand" after []`
	orders(append(wrappers[2:4:4], wrapper{"approve", wrappers[0].wrap}, wrapper{"respond", tool.Respond}), func(order []wrapper) {
		var r railway
		tl, names := r.tool(), []string{}
		for _, w := range order {
			tl, names = w.wrap(tl), append(names, w.name)
		}
		if got := course(t, &r, tl); got != want {
			t.Errorf("%v:\n\tgot  %s\n\twant %s", names, got, want)
		}
	})
}

func TestReview_MakesTheOneQuestionEditableInAnyOrder(t *testing.T) {
	for _, tl := range []*tool.Tool{tool.Review(tool.Approve(new(railway).tool())), tool.Approve(tool.Review(new(railway).tool()))} {
		_, err := newRun(t, tl, `{"to":"ORY"}`).start()
		if approval(t, err).Fixed {
			t.Error("the arguments cannot be edited")
		}
	}
}

func TestWrappers_LeaveTheWrappedToolAsItWas(t *testing.T) {
	var r railway
	plain := r.tool()
	held := tool.Approve(plain)
	tool.Review(held)
	tool.Guard(held, ruling(fermata.Deny, ""))
	tool.Respond(plain)
	tool.ReportErrors(plain)
	got, err := newRun(t, plain, `{"to":"ORY"}`).start()
	wantDone(t, got, err, "booked -ORY")
	_, err = newRun(t, held, `{"to":"ORY"}`).start()
	if !approval(t, err).Fixed {
		t.Error("a later wrapper changed it")
	}
}

// Two tools derived from one are independent, however many wrappers that one has.
func TestWrappers_AroundOneToolDoNotShare(t *testing.T) {
	base := new(railway).tool()
	for n := range 6 {
		denied, allowed := tool.Guard(base, ruling(fermata.Deny, "")), tool.Guard(base, ruling(fermata.Allow, ""))
		got, err := newRun(t, denied, `{"to":"ORY"}`).start()
		wantFailed(t, got, err, "refused")
		got, err = newRun(t, allowed, `{"to":"ORY"}`).start()
		wantDone(t, got, err, "booked -ORY")

		asks, passes := tool.FollowUp(base, tool.Needs[ticket](from)), tool.FollowUp(base, tool.Needs[ticket]())
		_, err = newRun(t, asks, `{"to":"ORY"}`).start()
		if waits := waitsFor(t, err); waits.Kind != tool.Completion.Name() {
			t.Errorf("after %d wrappers it asks %s", n, waits.Kind)
		}
		got, err = newRun(t, passes, `{"to":"ORY"}`).start()
		wantDone(t, got, err, "booked -ORY")
		base = tool.FollowUp(tool.Guard(base, ruling(fermata.Allow, "")), tool.Needs[ticket]())
	}
}
