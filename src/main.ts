import { useCompileCache } from './platform/compile-cache.js'

/** Runs this process's command line and leaves its exit code. */
export async function start(): Promise<void> {
  const phases = new Map([['runtime', process.uptime() * 1000]])
  useCompileCache()
  const [{ processIo }, { run }] = await Promise.all([import('./platform/io.js'), import('./cli/run.js')])
  const { argv, io, end } = processIo(phases)
  end(await run(argv, io))
}
