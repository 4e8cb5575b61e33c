package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/internal/test/must"
)

// maxPicture is how many bytes a picture in docs may have.
const maxPicture = 150_000

// picture takes a picture of what the page shows. With -update it becomes a file of docs.
func (p *tab) picture(name string) {
	p.t.Helper()
	eval[bool](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	p.accessible(name)
	ctx, stop := p.limited()
	defer stop()
	text := must.Get(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(p.t)
	taken := must.Get(png.Decode(bytes.NewReader(text)))(p.t)
	var out bytes.Buffer
	must.Do(p.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced(taken)))
	if out.Len() > maxPicture {
		p.t.Errorf("%s has %d bytes", name, out.Len())
	}
	if *update {
		must.Do(p.t, os.WriteFile(filepath.Join("../../../../../docs", name), out.Bytes(), 0o644))
	}
}

// reduced returns a picture with its 256 most frequent colors, which are enough for text.
func reduced(from image.Image) image.Image {
	counts := map[color.Color]int{}
	bounds := from.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[from.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	to := image.NewPaletted(bounds, colors[:min(len(colors), 256)])
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	return to
}

// TestPictures takes the pictures of docs/inspect.md and the README, and checks what they show.
func TestPictures(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	p := newTab(t, wide)
	p.open(server.URL())
	p.click(".verdict", "MUST")
	p.until(`document.querySelector(".example pre") && document.querySelector(".tree .description")`)
	p.picture("inspect-timeline.png")

	p = newTab(t, view{1280, 800, true})
	p.open(server.URL())
	p.click(".verdict", "MUST")
	p.click("button.link.code", "/params/update/entries/1/priority")
	p.picture("inspect-dark.png")

	p = newTab(t, narrow)
	p.open(server.URL())
	p.see("MUST") // the tabs have found their place
	p.click("[role=tab]", "Timeline")
	p.until(rows("session/prompt") + ".length > 0")
	p.picture("inspect-narrow.png")

	p = newTab(t, view{400, 800, true})
	p.open(server.URL())
	p.see("MUST")
	p.click("[role=tab]", "Conversation")
	p.see("permission: Allow")
	p.picture("inspect-narrow-dark.png")

	in, server = inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	read(t, in, "other.jsonl", strings.NewReplacer(`\"loadSession\":true,`, "", `urgent`, `low`, "Shop agent", "Other agent").Replace(faulty(t)))
	p = newTab(t, wide)
	p.open(server.URL())
	p.until(`document.querySelectorAll(".timeline:not([hidden])").length === 2`)
	p.click("[role=tab]", "Capabilities")
	p.until(`document.querySelector("tr.differs")`)
	p.picture("inspect-compare.png")

	_, server = inspection(t, inspect.Options{Agent: agent(t), Cwd: "/tmp"})
	p = newTab(t, wide)
	p.open(server.URL())
	p.prompt("Make a plan, think, and ask for permission.")
	p.see("The agent asks for permission")
	p.click("[role=tab]", "Conversation")
	p.picture("inspect-live.png")
}
