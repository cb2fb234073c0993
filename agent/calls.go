package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/tool"
)

// callAll calls the tools of a turn, each once. Finished calls are not repeated, regardless of the
// others.
func (v *conversation) callAll(ctx context.Context, turn int, calls []ToolCall) ([]Message, error) {
	place := v.activation.Child(fermata.Segment{Type: "tools", ID: strconv.Itoa(turn)}.String())
	if err := v.scope.meter.admitToolCalls(ctx, place, v.Name, len(calls)); err != nil {
		return nil, err
	}
	results, fresh := make([]Message, len(calls)), make([]bool, len(calls))
	one := func(i int) (err error) {
		results[i], fresh[i], err = v.call(ctx, calls[i])
		return err
	}
	var errs []error
	if v.Sequential || len(calls) == 1 {
		for i := range calls {
			if err := one(i); err != nil {
				return nil, err
			}
		}
	} else {
		errs = recovery.Parallel(len(calls), v.MaxParallel, one)
	}
	v.freshResults = slices.Contains(fresh, true)
	return results, errors.Join(errs...)
}

// call makes one tool call. fresh is false if it was made before.
func (v *conversation) call(ctx context.Context, call ToolCall) (message Message, fresh bool, err error) {
	segment := fermata.Segment{Type: fermata.SegmentTool, ID: call.Name, SubID: call.ID}
	stage := v.scope.forTool(segment)
	result, err := fermata.DoAt(ctx, segment, func(ctx context.Context) (result tool.Result, err error) {
		defer recovery.Recover(&err)
		ctx = withScope(ctx, stage)
		if stage.emitFunc != nil {
			ctx = tool.WithChunks(ctx, func(chunk string) { stage.emit(ToolOutput{Call: call, Text: chunk}) })
		}
		result, err = v.dispatch(ctx, call)
		if gone := checkNotBypassed(activation.FromContext(ctx), err); gone != nil { //mutate:tool-agent-gone
			return tool.Result{}, gone
		}
		if err != nil {
			return result, err
		}
		fresh, result.Text = true, validUTF8(result.Text)
		return result, nil
	})
	if err != nil {
		return Message{}, false, err
	}
	if fresh {
		stage.emit(ToolDone{Call: call, Result: result})
	}
	message = ToolResult(call, result.Text)
	message.Failed, message.Agent = result.Failed, v.Name
	return message, fresh, nil
}

// dispatch finds the target of the call and calls it.
func (v *conversation) dispatch(ctx context.Context, call ToolCall) (tool.Result, error) {
	if call.CutOff {
		return tool.Result{Failed: true, Text: "The call was not made: the answer was cut off before the call was complete. Call again, and say less before and in it."}, nil
	}
	args := json.RawMessage(call.Args)
	if strings.TrimSpace(call.Args) == "" {
		args = json.RawMessage("{}")
	}
	if t := v.table[call.Name]; t != nil {
		return t.Call(ctx, args)
	}
	if call.Name == ToolTransfer && len(v.targets()) > 0 {
		return v.acceptTransfer(args)
	}
	if scope := activation.FromContext(ctx); wasWaiting(scope, scope.Path()) { //mutate:tool-of-call-gone
		address, err := fermata.ParseAddress(scope.FullAddress())
		return tool.Result{}, errors.Join(&ProgramChangedError{Run: v.scope.run, Missing: []fermata.Address{address}}, err)
	}
	return tool.Result{Failed: true, Text: v.unknownTool(call.Name)}, nil
}

// unknownTool tells the model which tools there are.
func (v *conversation) unknownTool(name string) string {
	names := slices.Sorted(maps.Keys(v.table))
	if len(v.targets()) > 0 {
		names = append(names, ToolTransfer)
	}
	if len(names) == 0 {
		return fmt.Sprintf("There is no tool %q, and no other tool.", name)
	}
	return fmt.Sprintf("There is no tool %q. The tools are: %s.", name, strings.Join(names, ", "))
}
