package drawing_test

import (
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/drawing"
)

func Example() {
	d := drawing.New("review", [][]drawing.Node{
		{{ID: "in", Kind: drawing.KindStart}},
		{{ID: "draft", Kind: drawing.KindNode}},
		{{ID: "review", Kind: drawing.KindNode}},
		{{ID: "out", Kind: drawing.KindEnd}},
	}, []drawing.Edge{
		{From: "in", To: "draft"}, {From: "draft", To: "review"},
		{From: "review", To: "draft", Branch: true}, {From: "review", To: "out", Branch: true},
	})
	place, err := fermata.ParseAddress("runnable:review;node:review")
	if err != nil {
		panic(err)
	}
	fmt.Print(d.Marked(place).Text()) // or SVG, or Mermaid
	fmt.Println("then:", drawing.FormatNext(d.Next(place)))
	// Output:
	// start → draft
	// draft → review
	// review (waits) → draft or end
	// then: draft or the end
}
