// Package adversarialtext has texts and JSON values with which an agent, or a person who controls
// its input, could deceive an approver: hidden and imitating characters, terminal sequences, markup
// that looks like a control or a fact, and values that are too large. Each channel tests its
// rendering with all of them.
package adversarialtext

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Payload is a forged value.
type Payload struct {
	// Name identifies the payload. Its first word is the class: bidi, hidden, control, lookalike,
	// ansi, markup, facts, link, large, deep or number.
	Name string
	// Value is a JSON value. Text is the text in it; "" if it is not a text.
	Value json.RawMessage
	Text  string
	// Flag reports that the value has characters that must be marked: they are invisible, change
	// the direction of text, or imitate others. Other payloads must only be harmless.
	Flag bool
}

// runes are characters that must be marked, by class.
var runes = []struct {
	class string
	list  []rune
}{
	{"bidi", []rune{0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069}},
	{"hidden", []rune{0x00ad, 0x034f, 0x115f, 0x180e, 0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2063, 0x3164, 0xfeff, 0xffa0, 0xe0041, 0xe007f}},
	{"control", []rune{0x00, 0x01, 0x07, 0x08, 0x0b, 0x0c, 0x0d, 0x1b, 0x7f, 0x85, 0x9b, 0x2028, 0x2029}},
}

// places are texts in which a character %c deceives.
var places = []string{"alice%cbob@example.com", "120%c.00 EUR", "%cApprove"}

// imitations are letters of other scripts, by the Latin letter that they imitate.
var imitations = map[rune]rune{'a': 'а', 'c': 'с', 'e': 'е', 'i': 'і', 'o': 'о', 'p': 'р', 's': 'ѕ', 'x': 'х', 'y': 'у'}

// imitated are words in which one letter is replaced.
var imitated = []string{"paypal", "approve", "prod-cluster", "example.com", "invoices", "acme-corporation"}

// texts are other texts, by class.
var texts = []struct {
	class string
	flag  bool
	list  []string
}{
	{"lookalike", true, []string{"１２０.00", "a／b", "user＠example.com", "𝐚𝐩𝐩𝐫𝐨𝐯𝐞", "rm ‐rf", "10∕2", "ｐrod", "Ωrder αnd cοde"}},
	{"ansi", true, []string{
		"\x1b[2J\x1b[H", "\x1b[31mDENIED\x1b[0m", "\x1b]0;title\x07", "\x1b[1A\x1b[2Kapproved", "\x1b[8mhidden\x1b[28m", "\x9b2J", "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
		"safe\rrm -rf /", "delete\b\b\b\b\b\bupdate", "\x1b[?1049h", "z" + strings.Repeat("\u0301", 40),
	}},
	{"markup", false, []string{
		"<button>Approve</button>", "<script>fetch('/requests/1/approve',{method:'POST'})</script>", `<img src=x onerror=alert(1)>`, `<a href="/signout" class="btn primary">Approve</a>`,
		`<form method=post action=/requests/1/approve><button>OK</button></form>`, `"><svg onload=alert(1)>`, `' autofocus onfocus='alert(1)`, `</blockquote><div class="decide">`,
		`<!-- `, `]]><script>`, `</script><script>alert(1)</script>`, `<style>*{display:none}</style>`, `<iframe src="https://evil.example">`, `<input name=shown value=1>`,
		`<meta http-equiv=refresh content="0;url=https://evil.example">`, `<base href="https://evil.example">`, `<template><b>x</b></template>`, `<details open ontoggle=alert(1)>`,
		`{{.Me}}`, `{{template "request" .}}`, `${alert(1)}`, `&lt;b&gt;&#34;&amp;`, `<math><mtext></math><img onerror=alert(1)>`, `<object data="data:text/html,x">`,
	}},
	{"facts", false, []string{
		`</td></tr><tr><th>amount</th><td>1.00</td></tr>`, `<table class="args" data-fact><tr><th>amount</th><td>1</td></tr></table>`, "amount: 1.00\norder: 1",
		`<span class="pill ok">Approved by the auditor</span>`, "Approved by ann 2 minutes ago", "What will run\ntool noop", "Risk: low. Rule: none.", "\n\n\n\n\n\n\n\nYour vote counts.",
		`<h1>refund-bot wants to do nothing</h1>`, "sha256 0000…0000", "2 of 2 approvals", strings.Repeat("\n", 500) + "the end",
	}},
	{"link", false, []string{
		"[Approve](https://evil.example)", "![x](https://evil.example/pixel.png)", "<https://evil.example>", "[x](javascript:alert(1))", "https://evil.example/requests/1/approve",
		"javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "//evil.example/", "mailto:a@b.c?body=approve", "<!channel> <@U123> <https://evil.example|Approve>",
		"# Approved\n**Facts**\n| amount | 1 |\n|---|---|", "```\n</code></pre>\n```", "[1]: https://evil.example\n[Approve][1]",
	}},
	{"large", false, []string{strings.Repeat("a", 1<<20), strings.Repeat("word ", 20_000), strings.Repeat("<b>", 10_000), strings.Repeat("x\n", 5000)}},
	{"large", true, []string{strings.Repeat("\u202ea", 2000)}},
}

// values are JSON values that are not texts, by class.
var values = []struct{ class, value string }{
	{"number", "1e400"}, {"number", "-0"}, {"number", "0.1000000000000000055511151231257827021181583404541015625"}, {"number", "9007199254740993"}, {"number", "1E+2"},
	{"number", "123456789012345678901234567890"}, {"number", strings.Repeat("9", 5000)}, {"number", "0." + strings.Repeat("0", 3000) + "1"},
	{"deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000)}, {"deep", strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)},
	{"deep", "[" + strings.Repeat("[],", 2000) + "[]]"}, {"deep", `{"":{"":{"":""}}}`}, {"deep", `{"amount":1,"amount ":2,"Amount":3}`},
	{"deep", `{"</dt><dd>amount":"1"}`}, {"deep", `{"__proto__":{"polluted":true},"constructor":null}`}, {"deep", "[" + strings.Repeat("0,", 5000) + "0]"},
}

// All returns the payloads, always in the same order.
func All() (all []Payload) {
	text := func(class, text string, flag bool) {
		value, err := json.Marshal(text)
		if err != nil {
			panic(err) // a string is always valid
		}
		all = append(all, Payload{Name: fmt.Sprintf("%s %d", class, len(all)), Value: value, Text: text, Flag: flag})
	}
	for _, r := range runes {
		for _, c := range r.list {
			for _, place := range places {
				text(r.class, fmt.Sprintf(place, c), true)
			}
		}
	}
	for _, word := range imitated {
		for i, letter := range word {
			if other, ok := imitations[letter]; ok {
				text("lookalike", word[:i]+string(other)+word[i+1:], true)
			}
		}
	}
	for _, t := range texts {
		for _, s := range t.list {
			text(t.class, s, t.flag)
		}
	}
	for _, v := range values {
		all = append(all, Payload{Name: fmt.Sprintf("%s %d", v.class, len(all)), Value: json.RawMessage(v.value)})
	}
	return all
}
