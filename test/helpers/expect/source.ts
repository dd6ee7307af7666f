import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/*
 * Finds imports and exports of a source file. Regular expressions are enough, because
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
