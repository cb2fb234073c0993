package web_test

import (
	"fmt"
	"net/http"

	"github.com/fermata-go/fermata/internal/web"
)

// A program shows requests of its own kind with its own template. A custom element can add to it in
// browsers with scripts.
func ExampleView() {
	loan := web.View{
		Kind: "loan",
		Template: `
{{define "sentence"}}<b>{{markLine .From}}</b>: {{markLine (text .Data "customer")}}{{end}}
{{define "body"}}<div class="card pad"><p>{{mark (text .Data "purpose")}}</p>{{value .Data}}</div>{{end}}`,
		Element: "acme-loan",
		Script: []byte(`customElements.define("acme-loan", class extends HTMLElement {
	connectedCallback() { this.dataset.request = JSON.parse(this.querySelector("script").textContent).id; }
});`),
	}
	api := http.NotFoundHandler() // in a program: server.New
	_, err := web.New(web.Config{API: api, Views: []web.View{loan}})
	fmt.Println(err)
	// Output: <nil>
}
