import { setFlagsFromString } from 'node:v8'

/**
 * Spares a run the second compilation of undici's parser, which is WebAssembly: V8 makes code of it at once, and better code in a
 * thread that the process waits for at its end. It is 50 ms of a create, and only who parses for minutes gains from it.
 * For the versions of Node that this was tried with; V8 complains about flags that it does not know.
 */
export function compileParserOnce(): void {
  const major = parseInt(process.versions.node, 10)
  if (!('bun' in process.versions) && major <= 26) setFlagsFromString('--liftoff-only')
}
