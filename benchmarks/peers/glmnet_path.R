# One l1 path by glmnet: reads the problem from a folder of raw arrays, writes the answer there.
#
#   Rscript glmnet_path.R FOLDER FAMILY THRESH
suppressMessages({library(Matrix); library(glmnet)})
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
family <- arguments[2]
thresh <- as.numeric(arguments[3])

read <- function(name, what, size) {
  path <- file.path(folder, name)
  readBin(path, what, n = file.info(path)$size / size, size = size, endian = "little")
}
write <- function(name, values) writeBin(values, file.path(folder, name), endian = "little")

shape <- read("shape.bin", "integer", 4)
y <- read("y.bin", "double", 8)
alphas <- read("alphas.bin", "double", 8)
if (file.exists(file.path(folder, "indices.bin"))) {
  X <- new("dgCMatrix", i = read("indices.bin", "integer", 4), p = read("indptr.bin", "integer", 4),
           x = read("data.bin", "double", 8), Dim = shape)
} else {
  X <- matrix(read("data.bin", "double", 8), nrow = shape[1], ncol = shape[2])
}
glmnet.control(fdev = 0, devmax = 1)  # no early end of the path
start <- proc.time()
fit <- glmnet(X, y, family = family, lambda = alphas, standardize = FALSE, intercept = FALSE, thresh = thresh,
              maxit = 1e8)
taken <- proc.time() - start
beta <- as(fit$beta, "CsparseMatrix")
write("beta_data.bin", as.double(beta@x))
write("beta_indices.bin", as.integer(beta@i))
write("beta_indptr.bin", as.integer(beta@p))
write("seconds.bin", as.double(c(taken[["elapsed"]], taken[["user.self"]] + taken[["sys.self"]])))
