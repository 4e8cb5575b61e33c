// A terminal emulator for tests: xterm.js without a window, many terminals in one process. It reads requests and writes
// answers, one JSON object per line. What a program does to a terminal beyond its cells is counted as well.
import { createInterface } from 'node:readline'
import headless from '@xterm/headless'
import unicode11 from '@xterm/addon-unicode11'

const terminals = new Map()

const send = (message) => process.stdout.write(JSON.stringify(message) + '\n')

const palette = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
const colour = (cell, side) => {
  const n = side === 'fg' ? cell.getFgColor() : cell.getBgColor()
  const rgb = side === 'fg' ? cell.isFgRGB() : cell.isBgRGB()
  const indexed = side === 'fg' ? cell.isFgPalette() : cell.isBgPalette()
  const name = side === 'fg' ? '' : 'on-'
  if (rgb) return name + '#' + n.toString(16).padStart(6, '0')
  if (!indexed) return ''
  return name + (n < 8 ? palette[n] : n < 16 ? 'bright-' + palette[n - 8] : String(n))
}

const style = (cell) => [
  cell.isBold() && 'bold', cell.isDim() && 'dim', cell.isItalic() && 'italic', cell.isUnderline() && 'underline',
  cell.isBlink() && 'blink', cell.isInverse() && 'reverse', cell.isInvisible() && 'hidden',
  cell.isStrikethrough() && 'strike', cell.isOverline() && 'overline', colour(cell, 'fg'), colour(cell, 'bg'),
].filter(Boolean).join(' ')

function open(term, cols, rows) {
  const xterm = new headless.Terminal({ cols, rows, scrollback: 20000, allowProposedApi: true })
  xterm.loadAddon(new unicode11.Unicode11Addon())
  xterm.unicode.activeVersion = '11'
  const t = { xterm, modes: {}, commands: [], title: '' }
  xterm.onData((text) => send({ term, reply: Buffer.from(text).toString('base64') }))
  xterm.onTitleChange((title) => { t.title = title; t.commands.push('title ' + title) })
  xterm.onBell(() => t.commands.push('bell'))
  const set = (name, value) => { t.modes[name] = value }
  const csi = (id, does) => xterm.parser.registerCsiHandler(id, (params) => { does(params.flat()); return false })
  csi({ prefix: '?', final: 'h' }, (params) => params.forEach((n) => set(n, true)))
  csi({ prefix: '?', final: 'l' }, (params) => params.forEach((n) => set(n, false)))
  csi({ final: 'h' }, (params) => params.forEach((n) => set('ansi ' + n, true)))
  csi({ final: 'l' }, (params) => params.forEach((n) => set('ansi ' + n, false)))
  const stack = []
  let kitty = 0
  csi({ prefix: '>', final: 'u' }, ([n]) => { stack.push(kitty); kitty = n; set('kitty keyboard', kitty) })
  csi({ prefix: '<', final: 'u' }, ([n]) => { for (n ||= 1; n > 0; n--) kitty = stack.pop() ?? 0; set('kitty keyboard', kitty) })
  csi({ prefix: '=', final: 'u' }, ([n, how]) => { kitty = how === 2 ? kitty | n : how === 3 ? kitty & ~n : n; set('kitty keyboard', kitty) })
  csi({ prefix: '>', final: 'm' }, ([what, n]) => set('modified keys ' + what, n > 0 ? n : false))
  csi({ intermediates: ' ', final: 'q' }, ([n]) => set('cursor shape', n > 0 ? n : false))
  csi({ final: 'r' }, ([top, bottom]) => set('margins', top > 1 || bottom > 0 && bottom < xterm.rows ? [top, bottom] : false))
  xterm.parser.registerEscHandler({ final: '=' }, () => { set('keypad', true); return false })
  xterm.parser.registerEscHandler({ final: '>' }, () => { set('keypad', false); return false })
  xterm.parser.registerEscHandler({ final: 'c' }, () => { t.commands.push('reset'); return false })
  for (const n of [1, 4, 7, 8, 9, 10, 11, 12, 50, 52, 99, 104, 110, 111, 112, 133, 777, 1337]) {
    xterm.parser.registerOscHandler(n, (data) => {
      if (data !== '?') t.commands.push('osc ' + n + ' ' + data)
      else if (n === 11 && process.env.SCREEN_LIGHT) send({ term, reply: Buffer.from('\x1b]11;rgb:ffff/ffff/ffff\x1b\\').toString('base64') })
      return false
    })
  }
  csi({ final: 't' }, (params) => t.commands.push('window ' + params.join(';')))
  terminals.set(term, t)
}

function lines(xterm, from, to, whole) {
  const buffer = xterm.buffer.active
  const all = []
  for (let y = from; y < to; y++) {
    const line = buffer.getLine(y)
    let text = ''
    const cells = []
    const runs = []
    for (let x = 0; line && x < line.length; x++) {
      const cell = line.getCell(x)
      if (cell.getWidth() === 0) continue
      text += cell.getChars() || ' '
      cells.push({ text: cell.getChars() || ' ', width: cell.getWidth() })
      const s = style(cell)
      const last = runs[runs.length - 1]
      if (last && last.style === s && last.end === x) last.end = x + cell.getWidth()
      else runs.push({ start: x, end: x + cell.getWidth(), style: s })
    }
    const styled = runs.filter((r) => r.style)
    const end = Math.max(cells.findLastIndex((c) => c.text !== ' ') + 1, styled.length > 0 ? cells.length : 0)
    all.push({ text: text.trimEnd(), cells: whole ? cells.slice(0, end) : undefined, runs: styled, wrapped: Boolean(line?.isWrapped) })
  }
  return all
}

function frame(t, whole) {
  const { xterm } = t
  const buffer = xterm.buffer.active
  return {
    cols: xterm.cols, rows: xterm.rows, lines: lines(xterm, buffer.baseY, buffer.baseY + xterm.rows, whole),
    cursor: { x: buffer.cursorX, y: buffer.cursorY }, modes: t.modes, title: t.title, commands: t.commands,
  }
}

const does = {
  open: ({ term, cols, rows }) => open(term, cols, rows),
  resize: ({ term, cols, rows }) => terminals.get(term).xterm.resize(cols, rows),
  frame: ({ term, cells }) => frame(terminals.get(term), cells),
  history: ({ term }) => lines(terminals.get(term).xterm, 0, terminals.get(term).xterm.buffer.active.length),
  write: ({ term, data }) => new Promise((done) => terminals.get(term).xterm.write(Buffer.from(data, 'base64'), done)),
  close: ({ term }) => { terminals.get(term).xterm.dispose(); terminals.delete(term) },
}

send({ ready: true })
createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line)
  try {
    send({ id: request.id, result: (await does[request.op](request)) ?? null })
  } catch (e) {
    send({ id: request.id, error: String(e.stack ?? e) })
  }
})
