package sessionstore

import "os"

// Cut has cut called before each change of a file.
func Cut(d *Dir, cut func(file *os.File, at int64, data []byte)) { d.cut = cut }

// FileName is the name of a session's files, without the suffix.
var FileName = fileName

// Synced has synced called for each file and folder that is synchronized.
func Synced(d *Dir, synced func(name string)) { d.synced = synced }

// Occupy has the lists of a store wait until release is called.
func Occupy(d *Dir) (release func()) {
	d.index.busy <- struct{}{}
	return func() { <-d.index.busy }
}
