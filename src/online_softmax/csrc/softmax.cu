#include "softmax.hip"  // torch's build gives nvcc only files named .cu
