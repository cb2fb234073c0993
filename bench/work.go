package main

import (
	"fmt"
	"strings"
)

// The work is the same on both sides: the nodes of both engines use these types and functions.

// doc is the payload that passes from node to node.
type doc struct {
	Text   string `json:"text,omitempty"`
	Steps  int    `json:"steps"`
	Answer string `json:"answer,omitempty"`
	// Read is how much of the text was intact after the wait, for the graphs that drop the text at
	// their end.
	Read int `json:"read,omitempty"`
}

const (
	question = "publish?"
	answer   = "yes"
)

// step is the work of a node that does not interrupt.
func step(d doc) doc {
	d.Steps++
	return d
}

// answered is the work of a node that interrupted.
func answered(d doc, answer string) doc {
	d.Answer = answer
	return step(d)
}

// addText is the first node of the innermost graph: only that graph has the text.
func addText(text string) func(doc) doc {
	return func(d doc) doc {
		d.Text = text
		return step(d)
	}
}

// dropText is the last node of the innermost graph.
func dropText(text string) func(doc) doc {
	return func(d doc) doc {
		if d.Text == text {
			d.Read = len(text)
		}
		d.Text = ""
		return step(d)
	}
}

// expect returns the check of a final payload.
func expect(want doc) func(doc) error {
	return func(got doc) error {
		if got == want {
			return nil
		}
		return fmt.Errorf("the result is %s, want %s", outline(got), outline(want))
	}
}

func outline(d doc) string {
	return fmt.Sprintf("{%d bytes of text, %d steps, answer %q, %d bytes read}", len(d.Text), d.Steps, d.Answer, d.Read)
}

// escapedText returns a text of that many bytes. Its quotes and line ends must be escaped in JSON,
// as in real texts.
func escapedText(size int) string {
	const line = "A fermata holds a note for as long as the conductor likes; \"how long\" is not written down.\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

const (
	kib = 1 << 10
	mib = 1 << 20
)

func sizeName(size int) string {
	if size >= mib {
		return fmt.Sprintf("%dMiB", size/mib)
	}
	return fmt.Sprintf("%dKiB", size/kib)
}
