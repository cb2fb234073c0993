// Devpipeline takes an idea through a design and a task list to an implementation, with an approval
// gate after each of the first two. A rejection leads back, with feedback. It shows package gate.
//
//	go run ./examples/devpipeline -idea "a todo list"        # you decide
//	go run ./examples/devpipeline -auto                      # a script decides, and rejects everything once
//
// The run is kept in memory; examples/contentreview shows one that survives its process.
//
// With a server, the reviewer is a separate program. The server announces each gate by an event, so
// nothing is polled. Every command of fermata works, with this pipeline as one of its graphs:
//
//	go run ./examples/devpipeline demo        # prints FERMATA_URL and FERMATA_TOKEN
//	go run ./examples/devpipeline -remote     # starts a run there and follows it
//	go run ./examples/devpipeline -run KEY    # follows a run that waits there
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/app"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store/memory"
)

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") { // a command of fermata: demo, serve, inbox …
		flow, err := New()
		if err != nil {
			fail(err)
		}
		os.Exit(app.Main(app.Graphs(inproc.Flow(flow, inproc.FlowConfig[State]{}))))
	}
	idea := flag.String("idea", "a todo list", "what to build")
	auto := flag.Bool("auto", false, "let a script decide, which rejects everything once")
	name := flag.String("as", "you", "who decides, without a server")
	remote := flag.Bool("remote", false, "start the run on the server FERMATA_URL")
	key := flag.String("run", "", "follow the run with this state key on the server FERMATA_URL")
	flag.Parse()
	var r reviewer = &person{name: *name, in: bufio.NewScanner(os.Stdin), out: os.Stdout}
	if *auto {
		r = &script{out: os.Stdout, seen: map[string]bool{}}
	}
	var err error
	if *remote || *key != "" {
		err = runRemote(context.Background(), *idea, *key, r)
	} else {
		err = run(context.Background(), *idea, r, os.Stdout)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "devpipeline:", err)
	os.Exit(1)
}

// runRemote follows a run on a server. It starts one if the key is empty.
func runRemote(ctx context.Context, idea, key string, r reviewer) error {
	c, err := client.New(os.Getenv("FERMATA_URL"), os.Getenv("FERMATA_TOKEN"))
	if err == nil && key == "" {
		key, err = submit(ctx, c, idea)
	}
	if err != nil {
		return err
	}
	fmt.Println("Following run", key)
	return follow(ctx, c, key, r, os.Stdout)
}

// run takes one idea through the pipeline.
func run(ctx context.Context, idea string, r reviewer, out io.Writer) error {
	flow, err := New()
	if err != nil {
		return err
	}
	kept := graph.WithStore(memory.New())
	state, err := flow.Run(ctx, State{Idea: idea}, kept)
	for {
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits {
			break
		}
		open := info.Interrupts[0] // the gates come one after the other
		question, err2 := gate.Kind.Question(open)
		if err2 != nil {
			return err2
		}
		show(out, question)
		signal, err2 := r.decide(question)
		if err2 != nil {
			return err2
		}
		state, err = flow.Resume(ctx, info.Run, kept, graph.Answer(open.ID, signal))
	}
	if err != nil {
		return err
	}
	report(out, state)
	return nil
}

func show(out io.Writer, q gate.Question) {
	fmt.Fprintf(out, "\n⏸ %s: %s\n", q.Gate, q.Message)
	for line := range strings.Lines(q.CurrentStatus) {
		fmt.Fprintf(out, "  │ %s\n", strings.TrimRight(line, "\n"))
	}
}

func report(out io.Writer, s State) {
	fmt.Fprintln(out)
	for _, line := range s.Built {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out, "\nWho decided what:")
	for _, d := range s.Decisions {
		word := "rejected"
		if d.Approved {
			word = "approved"
		}
		line := fmt.Sprintf("  %s  %-15s %s by %s", d.At.Format(time.DateTime), d.Gate, word, d.By)
		if d.Feedback != "" {
			line += ": " + d.Feedback
		}
		fmt.Fprintln(out, line)
	}
}

// reviewer decides at the gates.
type reviewer interface {
	decide(q gate.Question) (gate.Signal, error)
}

// person decides at the terminal.
type person struct {
	name string
	in   *bufio.Scanner
	out  io.Writer
}

var errNoInput = errors.New("no decision was made; the run still waits at the gate")

func (p *person) decide(gate.Question) (gate.Signal, error) {
	signal := gate.Signal{ApprovedBy: p.name}
	for {
		answer, err := p.ask("Approve? (y/n)")
		if err != nil {
			return signal, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			signal.Approved = true
		case "n", "no":
			if signal.Feedback, err = p.ask("What should be improved?"); err != nil {
				return signal, err
			}
		default:
			continue
		}
		signal.ApprovedAt = time.Now()
		return signal, nil
	}
}

func (p *person) ask(question string) (string, error) {
	fmt.Fprintf(p.out, "%s > ", question)
	if !p.in.Scan() {
		fmt.Fprintln(p.out)
		return "", errors.Join(errNoInput, p.in.Err())
	}
	return strings.TrimSpace(p.in.Text()), nil
}

// script rejects everything that it sees for the first time.
type script struct {
	out  io.Writer
	seen map[string]bool
}

func (s *script) decide(q gate.Question) (gate.Signal, error) {
	signal := gate.Signal{Approved: s.seen[q.Gate], ApprovedAt: time.Now(), ApprovedBy: "the script"}
	s.seen[q.Gate] = true
	if signal.Approved {
		fmt.Fprintln(s.out, "  ✓ approved")
		return signal, nil
	}
	signal.Feedback = map[string]string{"design_approval": "name the risks", "dag_approval": "tests"}[q.Gate]
	fmt.Fprintln(s.out, "  ✗ rejected:", signal.Feedback)
	return signal, nil
}
