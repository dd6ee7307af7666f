import { useCompileCache } from './platform/compile-cache.js'

export async function start(): Promise<void> {
  useCompileCache()
  const [{ processIo }, { run }] = await Promise.all([import('./platform/io.js'), import('./cli/program/run.js')])
  const { argv, io, end } = processIo()
  end(await run(argv, io))
}
