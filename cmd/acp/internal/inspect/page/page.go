// Package page is the page of acp inspect, as the browser receives it. The sources are TypeScript; package bundle makes
// the files in dist of them, which are committed, so that building acp needs only Go.
package page

import "embed"

//go:generate go run ./bundle

// Files has the folder dist with index.html, app.js and app.css.
//
//go:embed dist
var Files embed.FS
