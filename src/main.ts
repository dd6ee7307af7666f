/**
 * Resolves to the exit code. bin/plants.js loads what is bundled from here. The name of this file
 * has no hash, so what V8 compiles of it is not kept: it only imports.
 */
export async function start(): Promise<number> {
  const [{ processIo }, { run }] = await Promise.all([
    import('./platform/io.js'),
    import('./cli/program/run.js'),
  ])
  const { argv, io, end } = processIo()
  const exitCode = await run(argv, io)
  end(exitCode)
  return exitCode
}
