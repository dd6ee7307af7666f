// Makes Node on Linux behave as on Windows, as far as the program meets it: node --require FILE. There are no user ids;
// an open file can be neither replaced nor removed, nor its folder renamed; fs.write shows text on a console in a code
// page; fstat knows no pipes, or not the standard streams.
const fs = require('node:fs')
const { join } = require('node:path')
const { isatty } = require('node:tty')

Object.defineProperty(process, 'platform', { value: 'win32' })
delete process.getuid
for (const name of ['isFIFO', 'isSocket', 'isBlockDevice']) fs.Stats.prototype[name] = () => false

const { dlopen } = process
process.dlopen = (module, file, ...flags) =>
  dlopen(module, file.replace('win32-', 'linux-'), ...flags)

function isOpen(path) {
  const links = fs.readdirSync('/proc/self/fd').map((fd) => {
    try {
      return fs.readlinkSync(join('/proc/self/fd', fd))
    } catch {
      return '' // that of readdirSync itself
    }
  })
  return links.some((open) => open === path || open.startsWith(`${path}/`))
}

function failing(name, code, fails) {
  const original = fs[name]
  fs[name] = (...args) => {
    if (fails(...args)) throw Object.assign(new Error(`${code}: ${name}`), { code, syscall: name })
    return original(...args)
  }
}

let scans = 3 // how often a scanner has the file open that is to be replaced
failing(
  'renameSync',
  'EPERM',
  (from, to) => isOpen(from) || isOpen(to) || (fs.existsSync(to) && scans-- > 0),
)
failing('rmSync', 'EBUSY', (path) => isOpen(path))
const { fstatSync } = fs
fs.fstatSync = (...args) => {
  const stats = fstatSync(...args)
  const isSocket = (Number(stats.mode) & fs.constants.S_IFMT) === fs.constants.S_IFSOCK // of execa
  return isSocket ? Object.assign(stats, { mode: fs.constants.S_IFIFO }) : stats
}

const { write, writeSync } = fs
const inCodePage = (fd, bytes) =>
  isatty(fd) ? Buffer.from(String(bytes).replace(/[^\0-\x7f]/g, '?')) : bytes
fs.write = (fd, bytes, ...rest) => write(fd, inCodePage(fd, bytes), ...rest)
fs.writeSync = (fd, bytes, ...rest) => writeSync(fd, inCodePage(fd, bytes), ...rest)
