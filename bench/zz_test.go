package main
import ("testing";"fmt";"os";"time";"strconv";"strings")
func TestZZ(t *testing.T) {
	p := holdPlan{rounds: 6, stretch: 1500*time.Millisecond, sized: 50}
	if os.Getenv("ZZR") != "" { p.rounds, _ = strconv.Atoi(os.Getenv("ZZR")) }
	var list []holdScenario
	for _, g := range strings.Split(os.Getenv("ZZG"), ",") { for _, c := range strings.Split(os.Getenv("ZZC"), ",") { n, _ := strconv.Atoi(c); list = append(list, holdScenario{g, n}) } }
	held, err := p.measure(t.Context(), list, os.Stderr)
	if err != nil { t.Fatal(err) }
	var b strings.Builder
	held.markdown(&b)
	fmt.Println(b.String())
}
