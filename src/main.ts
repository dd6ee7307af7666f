/**
 * Runs the program, which sets its exit code. bin/plants.js loads the bundle of this file.
 *
 * bin/plants.js must know the name of the file, which therefore is always main.js. The names of all
 * other files have a hash of their content, by which bin/code-cache.js tells whether what it has
 * kept of them is still theirs. So this file is compiled at each start, and does nothing itself.
 */
export async function start(): Promise<void> {
  const [{ createProcessIo }, { run }] = await Promise.all([
    import('./platform/io.js'),
    import('./cli/program/run.js'),
  ])
  const { argv, io, exitWith } = createProcessIo()
  exitWith(await run(argv, io))
}
