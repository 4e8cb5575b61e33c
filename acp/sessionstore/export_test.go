package sessionstore

import "os"

// Cut has cut called before each change of a file.
func Cut(d *Dir, cut func(file *os.File, at int64, data []byte)) { d.cut = cut }

// FileName is the name of a session's files, without the suffix.
var FileName = fileName
