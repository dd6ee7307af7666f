import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/*
 * Finds imports, exports and functions of a source file. Regular expressions are enough, because
 * biome has formatted each file.
 */

const root = join(import.meta.dirname, '../../..')

export function listSourceFiles(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .toSorted()
}

export function readSource(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

export interface Import {
  file: string
  /** The path from the root of the project, or the name of a package. */
  target: string
}

export function findImports(files: readonly string[]): Import[] {
  const pattern = /(?:from|import\(|import) ?'([^'\s]+)'/g
  return files.flatMap((file) =>
    Array.from(readSource(file).matchAll(pattern), ([, name = '']) => ({
      file,
      target: resolveImport(name, file),
    })),
  )
}

function resolveImport(name: string, file: string): string {
  if (name.startsWith('.'))
    return relative(root, join(root, dirname(file), name))
      .replaceAll('\\', '/')
      .replace(/\.js$/, '.ts')
  if (name.startsWith('node:')) return name
  return name.match(name.startsWith('@') ? /^[^/]+\/[^/]+/ : /^[^/]+/)?.[0] ?? name
}

/** Finds the names that a file exports. The name of an overloaded function is returned once. */
export function findExports(source: string): string[] {
  const pattern =
    /^export (?:async |abstract )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm
  return [...new Set(Array.from(source.matchAll(pattern), ([, name = '']) => name))]
}

/**
 * Finds the names of functions and methods. A getter is left out, because it is read as a value.
 */
export function findFunctionNames(source: string): string[] {
  const parameters = String.raw`\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)`
  const declaration = /\bfunction\*? (\w+)/g
  const arrow = RegExp(
    String.raw`\bconst (\w+) = (?:async )?(?:${parameters}(?:: .+)?|\w+) =>`,
    'g',
  )
  const method = RegExp(
    String.raw`^ +(?:(?:static|private|async) )*\*?#?(\w+)(?:<[^()]*>)?${parameters}(?:: .+)? \{$`,
    'gm',
  )
  const names = [declaration, arrow, method].flatMap((pattern) =>
    Array.from(source.matchAll(pattern), ([, name = '']) => name),
  )
  return names.filter((name) => name !== 'constructor')
}

/** A question needs no other verb, so a name such as `isPartOf` may end with `Of`. */
const question = /^(?:is|has|can|should)(?![a-z])/
const participle =
  /^(?:[a-z]+ed|broken|foreign|given|kept|known|left|lost|overwritten|retrying|shown|storedFor|tryingAgain|undone|unset|written)(?![a-z])/
/** These verbs and nouns end like participles. */
const noParticiple = /^(?:embed|exceed|feed|need|proceed|seed|speed|succeed)(?![a-z])/

/**
 * Whether a function is named by its result, such as `explained` or `copiedRows`, and not by what
 * it does, such as `explain` or `copyRows`.
 */
export function lacksVerb(name: string): boolean {
  if (question.test(name)) return false
  if (/[a-z\d](?:Of|In)$/.test(name)) return true
  return participle.test(name) && !noParticiple.test(name)
}

/**
 * Whether a line has more than 100 characters. A string or a regular expression in the code does
 * not count, because biome cannot break it.
 */
export function hasLongLine(source: string): boolean {
  return source.split('\n').some((line) => {
    const isComment = /^\s*(?:\/\/|\/?\*)/.test(line)
    const code = isComment ? line : line.replaceAll(unbreakable, '')
    return code.length > 100
  })
}

const unbreakable = /'(?:\\.|[^'\\])*'|`.*?(?:`|$)|(?<=^\s*)\/.+\/\w*$/g
