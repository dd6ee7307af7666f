/**
 * Runs the program and returns its exit code. bin/plants.js loads the bundle of this file.
 *
 * The bundle's name has no hash, so that the code cache cannot keep it. Therefore it only imports.
 */
export async function start(): Promise<number> {
  const [{ createProcessIo }, { run }] = await Promise.all([
    import('./platform/io.js'),
    import('./cli/program/run.js'),
  ])
  const { argv, io, end } = createProcessIo()
  const exitCode = await run(argv, io)
  end(exitCode)
  return exitCode
}
