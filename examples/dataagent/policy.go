package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
)

// statement is the policy's view of an SQL text.
type statement struct {
	// verb is the first word, in upper case; "" if there is none.
	verb string
	// count is the number of statements in the text.
	count int
	// complete is false if a quotation or a comment is not terminated.
	complete bool
	// usesKeysTable is true if it names the table with the shop's idempotency keys.
	usesKeysTable bool
}

func (s statement) reads() bool { return s.verb == "SELECT" && s.count == 1 && s.complete }

// ruling returns the ruling. It allows known reads, denies what is never acceptable, and asks for
// everything else.
func (s statement) ruling() fermata.Ruling {
	switch {
	case s.count == 0:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "there is no statement in it"}
	case s.count > 1:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "send one statement at a time, so that a person can see what each does"}
	case s.usesKeysTable:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "books", Reason: keysTable + " is not for agents"}
	case s.reads():
		return fermata.Ruling{Verdict: fermata.Allow, Rule: "reads", Reason: "it only reads"}
	}
	switch s.verb {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "each statement is a transaction of its own"}
	case "DELETE", "DROP", "UPDATE", "ALTER", "INSERT", "REPLACE", "CREATE":
		return fermata.Ruling{Rule: "changes", Reason: fmt.Sprintf("%s changes the database for good", s.verb)}
	}
	return fermata.Ruling{Rule: "unknown", Reason: "the policy does not know what it does"}
}

// classify tokenizes a text like SQLite, as far as needed to find the beginning and end of
// statements.
func classify(text string) statement {
	s := statement{complete: true, usesKeysTable: strings.Contains(strings.ToLower(text), keysTable)}
	inside := false // a statement has begun
	for text != "" {
		size, kind := token(text)
		switch kind {
		case semicolon:
			inside = false
		case unfinished:
			s.complete = false
			fallthrough
		case other:
			if !inside {
				s.count++
				inside = true
				if s.count == 1 {
					s.verb = strings.ToUpper(text[:word(text)])
				}
			}
		}
		text = text[size:]
	}
	return s
}

type tokenKind int

const (
	space tokenKind = iota // or a comment
	semicolon
	other
	unfinished // an unterminated quotation
)

// token returns the size and kind of the first token.
func token(text string) (size int, kind tokenKind) {
	switch c := text[0]; {
	case c == ';':
		return 1, semicolon
	case strings.IndexByte(" \t\n\f\r", c) >= 0:
		return 1, space
	case strings.HasPrefix(text, "--"):
		return through(text, "--", "\n"), space
	case strings.HasPrefix(text, "/*"):
		return through(text, "/*", "*/"), space
	// a doubled quote counts as two quotations, with the same result
	case c == '\'' || c == '"' || c == '`':
		return quotation(text, string(c), string(c))
	case c == '[':
		return quotation(text, "[", "]")
	}
	return max(1, word(text)), other
}

// through returns the length of the text up to and including end, or the whole length.
func through(text, begin, end string) int {
	if i := strings.Index(text[len(begin):], end); i >= 0 {
		return len(begin) + i + len(end)
	}
	return len(text)
}

func quotation(text, begin, end string) (int, tokenKind) {
	if !strings.Contains(text[len(begin):], end) {
		return len(text), unfinished
	}
	return through(text, begin, end), other
}

// word returns the length of the first word; 0 if there is none.
func word(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if end < 0 {
		return len(text)
	}
	return end
}
