import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/*
 * Reads a trace of strace to find out whether a program has reported data before the data was on
 * disk. A write to stdout, stderr or a socket is a report. Before a report, the data of each file
 * must be synced, and the directory of each new name. Before a rename, the data of the file must be
 * synced.
 */

const systemCalls = {
  write: ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'ftruncate', 'sendto', 'sendmsg'],
  sync: ['fsync', 'fdatasync'],
  make: ['open', 'openat', 'creat', 'mkdir', 'mkdirat'],
  rename: ['rename', 'renameat', 'renameat2'],
  remove: ['unlink', 'unlinkat', 'rmdir'],
} as const

type Action = keyof typeof systemCalls
const actions = Object.keys(systemCalls) as Action[]

interface Call {
  action: Action
  /** The file, or the name of a stream: `stdout`, `stderr` or `socket`. */
  path: string
  /** The new path of a rename. */
  target: string
}

/** A write to a stream, and the files and directories that were synced since the one before. */
interface Report {
  stream: string
  syncedPaths: string[]
}

/**
 * Follows what a program does with the files of a directory from now on.
 *
 * @param log the file that strace writes, outside of the directory
 */
export function traceDisk(directory: string, log: string) {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const existingPaths = new Set(names.map((name) => join(directory, name)))
  // strace ignores a call with "?" that the machine does not have.
  const tracedCalls = Object.values(systemCalls).flatMap((calls) => calls.map((call) => `?${call}`))
  return {
    strace: [
      'strace',
      '-f',
      '-y',
      '-s',
      '0',
      '-o',
      log,
      '-e',
      `trace=${[...tracedCalls, 'fcntl'].join()}`,
    ],
    /** Returns the reports, and what was reported too early. Its paths are relative. */
    review: () => {
      const disk = new Disk(directory, existingPaths)
      for (const call of parseTrace(readFileSync(log, 'utf8'), directory)) disk.apply(call)
      return { reports: disk.reports, tooEarly: disk.tooEarly }
    },
  }
}

/** The files of a directory, and which parts of them a crash could undo. */
class Disk {
  readonly reports: Report[] = []
  readonly tooEarly: string[] = []
  readonly #directory: string
  readonly #existingPaths: Set<string>
  /** Files with data that is not on disk. */
  readonly #unsyncedData = new Set<string>()
  /** New names that are not on disk. */
  readonly #unsyncedNames = new Set<string>()
  readonly #everWritten = new Set<string>()
  readonly #syncedSinceReport = new Map(
    ['stdout', 'stderr', 'socket'].map((stream) => [stream, new Set<string>()]),
  )

  constructor(directory: string, existingPaths: Set<string>) {
    this.#directory = directory
    this.#existingPaths = existingPaths
  }

  apply({ action, path, target }: Call): void {
    if (action === 'write') this.#write(path)
    else if (action === 'sync') this.#sync(path)
    else if (action === 'make') this.#make(path)
    else if (action === 'rename') this.#rename(path, target)
    else this.#forget(path)
  }

  #write(path: string): void {
    const syncedPaths = this.#syncedSinceReport.get(path)
    if (syncedPaths === undefined) {
      this.#unsyncedData.add(path)
      this.#everWritten.add(path)
      return
    }
    this.reports.push({ stream: path, syncedPaths: [...syncedPaths] })
    syncedPaths.clear()
    for (const file of this.#unsyncedData)
      if (this.#mustSurvive(file))
        this.tooEarly.push(`${path} before the data of ${this.#shorten(file)}`)
    for (const name of this.#unsyncedNames)
      if (this.#mustSurvive(name) && !this.#isEmptyWal(name))
        this.tooEarly.push(`${path} before the name of ${this.#shorten(name)}`)
  }

  #sync(path: string): void {
    this.#unsyncedData.delete(path)
    for (const name of this.#unsyncedNames)
      if (dirname(name) === path) this.#unsyncedNames.delete(name)
    for (const paths of this.#syncedSinceReport.values()) paths.add(this.#shorten(path))
  }

  #make(path: string): void {
    if (!this.#existingPaths.has(path)) this.#unsyncedNames.add(path)
    this.#existingPaths.add(path)
  }

  #rename(path: string, target: string): void {
    const hasUnsyncedData = this.#unsyncedData.has(path)
    if (hasUnsyncedData && this.#mustSurvive(target))
      this.tooEarly.push(`rename before the data of ${this.#shorten(target)}`)
    this.#forget(target)
    this.#forget(path)
    if (hasUnsyncedData) this.#unsyncedData.add(target)
    this.#existingPaths.add(target)
    this.#unsyncedNames.add(target)
  }

  #forget(path: string): void {
    for (const paths of [this.#unsyncedData, this.#unsyncedNames, this.#existingPaths])
      paths.delete(path)
  }

  /**
   * Locks, SQLite's shared memory, caches, and files until they are renamed need not survive a
   * crash.
   */
  #mustSurvive(path: string): boolean {
    const isTemporary = /-shm$|\.lock(?:$|\/)|\/\.cache(?:$|\/)|\/\.[^/]*plants-/.test(path)
    return path.startsWith(`${this.#directory}/`) && !isTemporary
  }

  #isEmptyWal(path: string): boolean {
    return path.endsWith('-wal') && !this.#everWritten.has(path)
  }

  #shorten(path: string): string {
    return relative(this.#directory, path) || '.'
  }
}

/**
 * Matches a call with its result. strace shows the file of a descriptor in angle brackets:
 * `openat(AT_FDCWD</home>, "a.db", O_RDWR|O_CREAT, 0600) = 3</home/a.db>`.
 */
const successfulCall =
  /^(?<name>\w+)\((?<descriptor>\d*)(?:<(?<open>.*?)>)?.*\) += \d+(?:<(?<opened>.*)>)?/

function parseTrace(trace: string, directory: string): Call[] {
  const descriptorsByFile = findStandardDescriptors(trace)
  return listCalls(trace).flatMap((line) => parseCall(line, directory, descriptorsByFile) ?? [])
}

/**
 * Finds the descriptors 1 and 2 by the pipe or the socket that each of them is. Bun writes to
 * copies of these descriptors, which have other numbers.
 */
function findStandardDescriptors(trace: string): ReadonlyMap<string, string> {
  const uses = trace.matchAll(/\b\w+\(([12])<((?:socket|pipe):[^>]*)>/g)
  return new Map(Array.from(uses, ([, descriptor = '', file = '']) => [file, descriptor]))
}

/** @returns undefined for a call that has failed, or changes nothing, such as opening a file */
function parseCall(
  line: string,
  directory: string,
  descriptorsByFile: ReadonlyMap<string, string>,
): Call | undefined {
  const { name, descriptor = '', open = '', opened } = successfulCall.exec(line)?.groups ?? {}
  const action = actions.find((key) => systemCalls[key].some((known) => known === name))
  const opensExisting = opened !== undefined && !/^creat|O_CREAT/.test(line)
  if (action === undefined || opensExisting) return undefined
  const quotedPaths = Array.from(line.matchAll(/"([^"]+)"/g), ([, path = '']) => path)
  const [namedPath, target = ''] = quotedPaths.map((path) => resolve(directory, path))
  const stream = { 1: 'stdout', 2: 'stderr' }[descriptorsByFile.get(open) ?? descriptor]
  const pathOfDescriptor = stream ?? open.replace(/^socket:.*/, 'socket')
  const path = opened ?? (descriptor === '' ? namedPath : pathOfDescriptor)
  return path ? { action, path, target } : undefined
}

/**
 * Lists the calls in the order in which they ended. strace divides a call into two lines if another
 * thread has run in between.
 */
function listCalls(trace: string): string[] {
  const unfinishedCalls = new Map<string, string>()
  return trace.split('\n').flatMap((line) => {
    const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, beginning] = /^(.*) <unfinished \.\.\.>$/.exec(call) ?? []
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? []
    if (beginning !== undefined) unfinishedCalls.set(thread, beginning)
    if (rest !== undefined) return [`${unfinishedCalls.get(thread)}${rest}`]
    return beginning === undefined ? [call] : []
  })
}
