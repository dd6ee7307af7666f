import { join } from 'node:path'
import { PlantsError } from '../../src/platform/errors.js'
import { ownService, token } from './http-store.js'
import { countOf } from './import.js'
import type { Result, RunOptions } from './run.js'
import { World } from './world.js'

/** An import that fails, and what is to be stored in the end. */
export interface FailingImport {
  files?: Record<string, string | Uint8Array>
  stdin?: string
  /** plants of others, which are in the store before: NDJSON */
  others?: string
  isService?: boolean
  /** options and files of imports, which the user runs of their own accord; hints lead on from the last one */
  commands: [string, ...string[]]
  /** whether a signal stops the first command when a part is stored */
  isStopped?: boolean
  /** what the user makes of the first file after the first command */
  edited?: string
  /** what the user corrects in a rejects file */
  correct?: [wrong: string, right: string]
  /** of the plants that are to be stored, each once */
  names: string[]
}

interface Chain {
  /** commands, and below the last ones their exit codes and hints */
  trail: string[]
  /** how many ways on each hint named */
  ways: number[]
  /** of what is stored, sorted, without the plants of others */
  names: string[]
  /** whether the last command succeeded */
  isDone: boolean
}

/**
 * A user who does what the hints of an import say, to their end. Of several ways that a hint names, `choices` has the
 * one to go, by default the first.
 */
export async function followHints(all: FailingImport, choices: readonly number[]): Promise<Chain> {
  const user = new World()
  const service = () => ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'service.db'))
  const store = all.isService ? await service() : './plants.db'
  const run = (line: string, options: RunOptions = {}) =>
    user.run(`${line} --store ${store}`, { env: { PLANTS_TOKEN: token }, ...options })
  const imported = async (line: string, options: RunOptions = {}): Promise<Result> => {
    const result = await run(`import ${line}`, { ...(all.stdin !== undefined && { stdin: all.stdin }), ...options })
    const isLook = result.code === 0 && line.includes(' --dry-run') // what it shows is right
    return isLook ? imported(line.replace(' --dry-run', ''), options) : result
  }

  for (const [name, content] of Object.entries(all.files ?? {})) user.write(name, content)
  if (all.others) await run('import', { stdin: all.others })
  const others = await namesIn(run)
  const trail = [...all.commands]
  const ways: number[] = []
  const [first, ...more] = all.commands
  let result = await imported(first, all.isStopped ? stopsWhenStored(join(user.home, 'plants.db')) : {})
  if (all.edited !== undefined) user.write(Object.keys(all.files ?? {})[0] ?? '', all.edited)
  for (const command of more) result = await imported(command)

  const seen = new Set<string>()
  for (let line = all.commands.at(-1) ?? first; ; ) {
    const hint = / {2}(?<hint>.*)\n$/.exec(result.err)?.groups?.['hint'] ?? ''
    trail.push(`  ${result.code} ${hint}`)
    const file = rejectsIn(hint)
    if (file && all.correct) user.write(nameOf(file), user.read(nameOf(file)).replace(...all.correct))
    const some = result.code === 0 || seen.has(line + hint) ? [] : waysOf(hint, { first, line, number: seen.size + 1 })
    const way = some[choices[ways.length] ?? 0]
    if (!way) break
    seen.add(line + hint)
    ways.push(some.length)
    if (way.ids) await run('delete - --yes', { stdin: way.ids })
    line = way.line
    trail.push(`${way.ids ? '(after delete) ' : ''}${line}`)
    result = await imported(line)
  }
  const names = (await namesIn(run)).filter((name) => !others.includes(name))
  return { trail, ways, names: names.toSorted(), isDone: result.code === 0 }

  function nameOf(path: string): string {
    return path.replace(`${user.home}/`, '')
  }
}

function stopsWhenStored(store: string): Pick<RunOptions, 'signal' | 'now'> {
  const stop = new AbortController()
  const now = () => {
    if (countOf(store) > 0) stop.abort(new PlantsError('interrupted', 'Interrupted'))
    return performance.now()
  }
  return { signal: stop.signal, now }
}

async function namesIn(run: (line: string) => Promise<Result>): Promise<string[]> {
  const { out } = await run('list')
  return out === ''
    ? []
    : out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).name)
}

function rejectsIn(hint: string): string | undefined {
  return /^Correct them in (?<file>\S+),/.exec(hint)?.groups?.['file']
}

interface Way {
  line: string
  /** to delete before, one per line */
  ids?: string | undefined
}

/** The ways on that a hint names; none if a person has to look for plants first. */
function waysOf(text: string, { first, line, number }: { first: string; line: string; number: number }): Way[] {
  const rejects = `--rejects rejects-${number}`
  const file = rejectsIn(text)
  if (file !== undefined) {
    const options = line.replace(/^(?:(?!--)\S*\s*)+/, '')
    return [
      {
        line: `${file} ${withOption(text.includes('next') ? withOption(options, '--id-from next') : options, rejects)}`,
      },
    ]
  }
  const policies = /--if-exists (?<words>\w+(?:, \w+)* or \w+)/.exec(text)?.groups?.['words']
  if (policies !== undefined)
    return policies.split(/, | or /).map((word) => ({ line: withOption(line, `--if-exists ${word}`) }))
  return text.split(', or ').flatMap((part): Way[] => {
    if (/use the same (?:options|flags)/i.test(part)) return [{ line: first }]
    const ids = part.includes('delete what') ? idsOf(part) : undefined
    if (ids === '') return []
    const options = part.match(/(?:without )?--[a-z-]+(?: (?!and\b|or\b|for\b|COLUMN)[^\s,-][^\s,.]*)?/g) ?? []
    if (options.length === 0 && !part.includes('the same command again')) return []
    return [{ line: options.reduce((all, option) => changed(all, option, rejects), line), ids }]
  })
}

function changed(line: string, option: string, rejects: string): string {
  if (option.startsWith('without ')) return withOption(line, option.replace('without ', '')).replace(/ ?--\S+$/, '')
  return withOption(line, option.startsWith('--rejects') ? rejects : option)
}

/** In place of the same one with another value. */
function withOption(line: string, option: string): string {
  const name = option.split(' ')[0] ?? ''
  return `${line.replace(new RegExp(`(^| )${name}(?: [^-\\s]\\S*)?(?= |$)`), '')} ${option}`.trim()
}

/** Nothing if others may have ids between them. */
function idsOf(text: string): string {
  const range = /, the ids (?<from>\d+) to (?<to>\d+),/
  const { from, to } = range.exec(text)?.groups ?? {}
  if (from === undefined) return ''
  return Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => index + Number(from)).join('\n')
}
